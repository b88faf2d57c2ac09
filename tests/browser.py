"Debian's Chromium, driven by playwright; a test that asks for it is skipped with a word where either is missing"
import os, shutil
from contextlib import contextmanager
import pytest

CHROMIUM = os.environ.get('CHROMIUM') or shutil.which('chromium') or shutil.which('chromium-browser')

@contextmanager
def open_browser():
    if not CHROMIUM: pytest.skip('no Chromium here: `apt-get install chromium` (or CHROMIUM=PATH) runs this test')
    playwright = pytest.importorskip('playwright.sync_api', reason='playwright is not installed: `make dev` installs it')
    with playwright.sync_playwright() as p:
        browser = p.chromium.launch(executable_path=CHROMIUM, args=['--no-sandbox', '--disable-dev-shm-usage'])
        try: yield browser
        finally: browser.close()

def listen(page, allow=lambda text: False):
    "What the page complains about from now on."
    said = []
    page.on('pageerror', lambda error: said.append(str(error)))
    page.on('console', lambda m: said.append(m.text) if m.type == 'error' and not allow(m.text) else None)
    return said
