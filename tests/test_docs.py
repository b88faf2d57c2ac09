"The documentation site builds, has a page for every notebook, needs no other machine, and its links lead somewhere"
import os, re, subprocess, sys, threading
from contextlib import contextmanager
from functools import partial
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote
import pytest
from browser import listen, open_browser

ROOT = Path(__file__).resolve().parent.parent

@pytest.fixture(scope='module')
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp('docs')/'site'
    env = {**os.environ, 'PATH': os.pathsep.join(p for p in os.environ['PATH'].split(os.pathsep) if not Path(p, 'quarto').exists())}
    done = subprocess.run([sys.executable, ROOT/'scripts'/'build_docs.py', out], cwd=ROOT, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return out

class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args): pass
    def do_GET(self):
        if self.path != '/favicon.ico': return super().do_GET()
        self.send_response(204) # browsers ask for it by themselves
        self.end_headers()

@contextmanager
def serve(folder):
    server = ThreadingHTTPServer(('127.0.0.1', 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try: yield f'http://127.0.0.1:{server.server_port}'
    finally: server.shutdown()

def pages(site): return [p for p in site.rglob('*.html') if 'source' not in p.relative_to(site).parts]

def test_every_notebook_has_a_page(site):
    names = {re.sub(r'^\d+[a-z]?_', '', p.stem) for p in (ROOT/'nbs').rglob('*.ipynb') if '.ipynb_checkpoints' not in p.parts}
    assert names <= {p.stem for p in pages(site)}

def test_pages_load_nothing_from_elsewhere(site):
    for page in pages(site):
        text = page.read_text(encoding='utf-8')
        assert not re.findall(r'<(?:script|img|iframe)[^>]*\bsrc="(?:https?:)?//', text), page.name
        assert not re.findall(r'<link[^>]*rel="(?:stylesheet|preload)"[^>]*href="(?:https?:)?//', text), page.name
        assert 'class="math' not in text, f'{page.name}: a formula was not drawn'
    assert [css.name for css in site.rglob('*.css') if re.search(r'@import[^;]*//', css.read_text(encoding='utf-8'))] == []

def test_links_lead_somewhere(site):
    broken = []
    for page in pages(site):
        for href in re.findall(r'<a [^>]*href="([^"]*)"', page.read_text(encoding='utf-8')):
            target = unquote(unescape(href)).split('#')[0].split('?')[0]
            if not target or re.match(r'[a-z]+:|//', target): continue
            if not (page.parent/target).exists(): broken.append(f'{page.relative_to(site)}: {href}')
    assert broken == []

def test_the_api_is_documented(site):
    for name, symbol in {'core': 'derive_seed', 'run.pipeline': 'run_pipeline', 'sand.grade': 'grade'}.items():
        text = (site/f'{name}.html').read_text(encoding='utf-8')
        assert f'>{symbol}<' in text and 'source/' in text

def test_pages_open_in_a_browser_without_complaint_and_fit_a_phone(site):
    "No error on the console, and nothing but what scrolls in its own box is wider than a phone."
    with open_browser() as browser, serve(site) as address:
        page = browser.new_page(viewport={'width': 390, 'height': 800})
        said = listen(page)
        wide = []
        for path in pages(site):
            name = path.relative_to(site).as_posix()
            page.goto(f'{address}/{name}', wait_until='load')
            if page.evaluate('document.documentElement.scrollWidth > window.innerWidth + 1'): wide.append(name)
        assert (said, wide) == ([], [])
