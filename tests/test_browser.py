"JupyterLab in a real browser: the task browser opens, is clicked through, and grades a file"
import json, os, socket, subprocess, sys, time, urllib.request
from pathlib import Path
import pytest
from browser import listen, open_browser
from test_look import corpus_dir # noqa: F401 (a fixture)

ROOT = Path(__file__).resolve().parent.parent

def notebook(*sources):
    cells = [{'cell_type': 'code', 'id': f'cell-{i}', 'metadata': {}, 'execution_count': None, 'outputs': [], 'source': s} for i, s in enumerate(sources)]
    kernel = {'kernelspec': {'display_name': 'Python 3', 'language': 'python', 'name': 'python3'}}
    return json.dumps({'cells': cells, 'metadata': kernel, 'nbformat': 4, 'nbformat_minor': 5})

@pytest.fixture(scope='module')
def lab(corpus_dir, tmp_path_factory): # noqa: F811
    with open_browser() as browser:
        root = tmp_path_factory.mktemp('lab')
        (root/'ui.ipynb').write_text(notebook(f'from sandsmith.look.widgets import browse_tasks\nbrowse_tasks({str(corpus_dir)!r})'))
        quiet = root/'set'/'@jupyterlab'/'apputils-extension'
        quiet.mkdir(parents=True)
        (quiet/'notification.jupyterlab-settings').write_text('{"fetchNews": "false"}')
        with socket.socket() as s:
            s.bind(('127.0.0.1', 0))
            port = s.getsockname()[1]
        places = {'JUPYTER_CONFIG_DIR': 'cfg', 'JUPYTERLAB_SETTINGS_DIR': 'set', 'JUPYTERLAB_WORKSPACES_DIR': 'ws', 'JUPYTER_RUNTIME_DIR': 'run'}
        env = {**os.environ, **{name: str(root/folder) for name, folder in places.items()}, 'PYTHONPATH': str(ROOT), 'OMP_NUM_THREADS': '1'}
        command = [sys.executable, '-m', 'jupyterlab', '--no-browser', '--allow-root', '--ip=127.0.0.1', f'--port={port}',
                   '--ServerApp.port_retries=0', '--IdentityProvider.token=t', f'--ServerApp.root_dir={root}',
                   '--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate']
        with (root/'lab.log').open('w') as log: server = subprocess.Popen(command, env=env, stdout=log, stderr=subprocess.STDOUT)
        try:
            for _ in range(120):
                try: urllib.request.urlopen(f'http://127.0.0.1:{port}/api?token=t')
                except OSError: time.sleep(.25)
                else: break
            yield browser, f'http://127.0.0.1:{port}/lab/tree/ui.ipynb?token=t&reset', root
        finally:
            server.terminate()
            server.wait(20)

def run_all(page, address):
    page.set_default_timeout(45_000)
    page.goto(address)
    page.locator('.jp-Notebook .jp-Cell').first.wait_for()
    page.get_by_text('| Idle').first.wait_for() # before it, Run opens a dialog that asks for a kernel
    page.get_by_role('menuitem', name='Run', exact=True).click()
    page.get_by_role('menuitem', name='Run All Cells', exact=True).click()

def test_the_task_browser_in_jupyterlab(lab, corpus_dir): # noqa: F811
    browser, address, root = lab
    page = browser.new_page(viewport={'width': 1400, 'height': 1000})
    said = listen(page, allow=lambda text: 'Failed to load resource' in text) # JupyterLab asks for workspaces that are not there yet
    run_all(page, address)
    titles = page.locator('.widget-select select option')
    titles.nth(1).wait_for(state='attached')
    first, second = (text.replace('\xa0', ' ') for text in titles.all_inner_texts())
    shown = page.locator('.ss h2').first
    shown.wait_for()
    assert shown.inner_text() == first
    page.locator('.widget-select select').first.select_option(index=1)
    page.locator('.ss h2', has_text=second).first.wait_for()

    rule = page.locator('.ss details', has_text='Hidden rule').locator('pre').first
    assert not rule.is_visible() # only a click reveals it
    for summary in page.locator('.ss summary').all():
        if summary.locator('xpath=..').get_attribute('open') is None: summary.click()
    rule.wait_for()
    for part in ('svg[aria-label^="Thresholds"]', 'svg[aria-label*="baselines"]', '.panels svg', 'table'):
        assert page.locator(f'.ss {part}').first.is_visible(), part

    task = next(d for d in (corpus_dir/'tasks').iterdir() if json.loads((d/'task.json').read_text())['spec']['title'] == second)
    with page.expect_file_chooser() as chooser: page.get_by_role('button', name='Grade a file').click()
    chooser.value.set_files(task/'public'/'sample_submission.csv')
    page.get_by_text('hidden rows (').first.wait_for()
    assert 'sample_submission.csv' in page.locator('.ss').first.inner_text()
    page.screenshot(path=root/'browser.png')
    assert (root/'browser.png').stat().st_size > 20_000 and said == []
