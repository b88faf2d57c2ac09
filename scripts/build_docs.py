"""Build the documentation site from the notebooks: with Quarto where it is installed, else with smalldocs, from the same input.

    python scripts/build_docs.py [FOLDER]      FOLDER is _docs by default, and is replaced

Works in a scratch copy, so that the checkout is left as it was, and without a network: formulas become MathML, and `source` links lead to
pages of the site itself."""
import html, json, os, re, shutil, subprocess, sys, tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BANDS = {'0': 'Common', '1': 'sand: tasks', '2': 'smith: tools', '3': 'rl: rewards and training', '4': 'bench', '5': 'look', '6': 'run'}
FOLDERS = {'pipeline': 'The pipeline', 'tutorials': 'Notes and tutorials'}

def page_name(name: str) -> str:
    "The name of a notebook's page: 12a_sand.families.text.ipynb → sand.families.text.ipynb, the one that nbdev's own links expect."
    return re.sub(r'(^|/)\d+[a-z]?_', r'\1', name)

def sidebar(nbs: Path) -> dict:
    "Notebooks by band, then the folders; Quarto's sidebar format."
    groups = {title: f'{band}[0-9]*_*.ipynb' for band, title in BANDS.items()}
    groups |= {title: f'{folder}/*.ipynb' for folder, title in FOLDERS.items()}
    sections = [{'section': title, 'contents': [p.relative_to(nbs).as_posix() for p in sorted(nbs.glob(pattern))]}
        for title, pattern in groups.items()]
    first = ['index.ipynb'] if (nbs/'index.ipynb').exists() else []
    return {'website': {'sidebar': {'contents': first + [s for s in sections if s['contents']]}}}

def split_title(path: Path) -> None:
    "nbdev takes the first cell for title and subtitle only: move the text below them into a cell of its own."
    nb = json.loads(path.read_text(encoding='utf-8'))
    for i, cell in enumerate(nb['cells']):
        title = re.match(r'# .+\n+(?:> .+\n+)?(?=\S)', ''.join(cell['source'])) if cell['cell_type'] == 'markdown' else None
        if title:
            rest = ''.join(cell['source'])[title.end():]
            nb['cells'][i:i + 1] = [{**cell, 'source': title[0].strip()}, {**cell, 'id': 'introduction', 'source': rest}]
            break
    path.write_text(json.dumps(nb), encoding='utf-8')

def process(work: Path) -> tuple[Path, str]:
    "Run nbdev's processors (API tables, links, hidden cells) ; gives the folder, and the address its links begin with."
    import nbdev.processors, yaml
    from nbdev.config import get_config
    from nbdev.doclinks import _build_modidx
    from nbdev.quarto import refresh_quarto_yml
    from nbdev.serve import proc_nbs
    cfg = get_config()
    refresh_quarto_yml()
    _build_modidx()
    (work/'nbs'/'sidebar.yml').write_text(yaml.safe_dump(sidebar(work/'nbs'), sort_keys=False))
    last_first = nbdev.processors._def_names
    nbdev.processors._def_names = lambda *args: last_first(*args)[::-1] # the definitions of a cell in their own order
    return Path(proc_nbs(cfg.nbs_path, n_workers=2)), cfg.doc_host + cfg.doc_baseurl.rstrip('/')

def render_quarto(proc: Path) -> Path:
    subprocess.run(['quarto', 'render', str(proc), '--no-cache'], check=True)
    return proc/'_docs'

def render_smalldocs(proc: Path, address: str) -> Path:
    "smalldocs takes Quarto's input, but names a page after its file and keeps links to the published address: both are put right first."
    site = proc.parent/'site'
    shutil.copytree(proc, site, ignore=shutil.ignore_patterns('_docs'))
    for path in sorted(site.rglob('*.ipynb')):
        up = '../'*(len(path.relative_to(site).parts) - 1) or './'
        text = re.sub(re.escape(address) + '/(?!blob/)', up, path.read_text(encoding='utf-8'))
        path.unlink()
        path.with_name(page_name(path.name)).write_text(text, encoding='utf-8')
    menu = site/'sidebar.yml'
    menu.write_text(re.sub(r'[\w./-]+\.ipynb', lambda m: page_name(m[0]), menu.read_text()))
    done = subprocess.run([str(Path(sys.executable).with_name('smalldocs')), 'render', str(site)], capture_output=True, text=True)
    for line in done.stderr.splitlines(): # of Quarto's keys it says that it does not need them
        if not re.search(r'output-file is not read|html-math-method is ignored', line): print(line, file=sys.stderr)
    done.check_returncode()
    return site/'_docs'

def as_mathml(page: str) -> str:
    "Formulas as MathML, which browsers draw themselves, and no script from elsewhere."
    from latex2mathml.converter import convert
    def formula(m: re.Match) -> str:
        return convert(html.unescape(m[2]), display='block' if m[1] in ('$$', r'\[') else 'inline')
    page = re.sub(r'<span class="math (?:inline|display)">(\\\(|\\\[|\$\$?)(.*?)(?:\\\)|\\\]|\$\$?)</span>', formula, page, flags=re.S)
    return re.sub(r'<(?:link|script)[^>]*katex[^>]*>(?:</script>)?', '', page)

def source_pages(site: Path) -> None:
    "The library's modules with numbered lines, for the `source` links."
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer
    style = 'body { margin: 1rem; font-size: .85rem } :target, span:target { background: #ffeb9c; color: #000 }'
    for path in sorted((ROOT/'sandsmith').rglob('*.py')):
        name = path.relative_to(ROOT/'sandsmith').as_posix()
        out = site/'source'/f'{name}.html'
        out.parent.mkdir(parents=True, exist_ok=True)
        formatter = HtmlFormatter(full=True, title=name, linespans='L', cssstyles='', style='friendly')
        text = highlight(path.read_text(encoding='utf-8'), PythonLexer(), formatter).replace('</style>', f'{style}</style>', 1)
        out.write_text(text.replace('id="L-', 'id="L'), encoding='utf-8')

def build(out: Path) -> str:
    "Build the site into `out`; gives the name of the tool that rendered it."
    with tempfile.TemporaryDirectory(prefix='sandsmith-docs-') as scratch:
        work = Path(scratch)/'sandsmith'
        work.mkdir()
        skip = shutil.ignore_patterns('__pycache__', '.ipynb_checkpoints')
        for name in ('nbs', 'sandsmith', 'data'): shutil.copytree(ROOT/name, work/name, ignore=skip)
        for name in ('settings.ini', 'pyproject.toml', 'setup.py'): shutil.copy(ROOT/name, work/name)
        for path in (*work.rglob('*.py'), *work.rglob('*.ipynb')): # nbdev evaluates annotations, so import what only type checkers do
            path.write_text(path.read_text(encoding='utf-8').replace('if TYPE_CHECKING:', 'if True:'), encoding='utf-8')
        for path in (work/'nbs').rglob('*.ipynb'): split_title(path)
        os.chdir(work) # nbdev finds its settings from here
        sys.path.insert(0, str(work))
        proc, address = process(work)
        tool = 'quarto' if shutil.which('quarto') else 'smalldocs'
        site = render_quarto(proc) if tool == 'quarto' else render_smalldocs(proc, address)
        for page in site.rglob('*.html'):
            up, text = '../'*(len(page.relative_to(site).parts) - 1), page.read_text(encoding='utf-8')
            text = re.sub(re.escape(address) + r'/blob/main/sandsmith/([\w./]+\.py)', rf'{up}source/\1.html', text)
            page.write_text(as_mathml(text.replace('__main__.', '')), encoding='utf-8') # `__main__.Tool`: nbdev's name for it
        for css in site.rglob('*.css'): # themes ask Google for their fonts; the system's stand in, and the site opens without a network
            css.write_text(re.sub(r'@import\s*url\([^)]*//[^)]*\);?', '', css.read_text(encoding='utf-8')), encoding='utf-8')
        source_pages(site)
        os.chdir(ROOT)
        shutil.rmtree(out, ignore_errors=True)
        shutil.move(site, out)
    return tool

if __name__ == '__main__':
    out = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT/'_docs').absolute()
    tool = build(out)
    print(f'{tool} built {out/"index.html"}')
