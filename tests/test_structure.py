"Rules of the repository: what imports what, sizes, generated files that match their notebooks, outputs that hold no machine's traces"
import ast, importlib.metadata, json, os, re, shutil, subprocess, sys
from configparser import ConfigParser
from pathlib import Path
import pytest

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
NOTEBOOKS = sorted(p for p in (ROOT/'nbs').rglob('*.ipynb') if '.ipynb_checkpoints' not in p.parts)
HAND_WRITTEN = {'__init__', '_modidx', '_child'}

def load(path): return json.loads(path.read_text(encoding='utf-8'))
def source(cell): return ''.join(cell['source'])
def code_cells(nb): return [c for c in nb['cells'] if c['cell_type'] == 'code']
def is_exported(cell): return cell['cell_type'] == 'code' and bool(re.search(r'^#\|\s*export(i|s)?\b', source(cell), re.M))
def exported(nb): return [source(c) for c in nb['cells'] if is_exported(c)]

def module_of(nb):
    found = re.search(r'^#\|\s*default_exp\s+([\w.]+)', '\n'.join(map(source, code_cells(nb))), re.M)
    return found and found[1]

def order_of(path):
    "Number, then letter: 12b comes after 12a and before 13."
    number, letter = re.match(r'(\d\d)([a-z]?)_', path.name).groups()
    return int(number), letter

BY_MODULE = {module_of(load(p)): p for p in NOTEBOOKS if module_of(load(p))}
EXPORTING = sorted(BY_MODULE.values())
def ids(p): return p.relative_to(ROOT/'nbs').as_posix()

# --- what imports what

def imported_modules(text, module=''):
    "Modules of sandsmith that a file imports, at any depth."
    package = ['sandsmith', *module.split('.')[:-1]]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import): names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = '.'.join(package[:len(package) - node.level + 1]) if node.level else ''
            stem = '.'.join(x for x in (base, node.module) if x)
            names = [stem, *(f'{stem}.{a.name}' for a in node.names)]
        else: continue
        yield from (n.removeprefix('sandsmith.') for n in names if n.startswith('sandsmith.'))

@pytest.mark.parametrize('path', EXPORTING, ids=ids)
def test_imports_come_from_lower_numbers(path):
    module = module_of(load(path))
    text = (ROOT/'sandsmith'/f'{module.replace(".", "/")}.py').read_text(encoding='utf-8')
    others = {m for m in imported_modules(text, module) if m in BY_MODULE and m != module}
    assert [m for m in others if order_of(BY_MODULE[m]) >= order_of(path)] == []

def test_numbers_are_used_once():
    orders = [order_of(p) for p in EXPORTING]
    assert len(set(orders)) == len(orders)

def test_every_module_has_a_notebook_and_back():
    modules = {p.relative_to(ROOT/'sandsmith').with_suffix('').as_posix().replace('/', '.')
        for p in (ROOT/'sandsmith').rglob('*.py') if p.stem not in HAND_WRITTEN}
    assert modules == set(BY_MODULE)
    assert not [p for p in (ROOT/'sandsmith').rglob('*.py') if p.with_suffix('').is_dir()], 'x.py beside x/ is hidden by it'

@pytest.mark.parametrize('path', [p for p in NOTEBOOKS if p not in EXPORTING], ids=ids)
def test_other_notebooks_export_nothing(path):
    assert exported(load(path)) == []

# --- what may be imported when

def packages(nodes):
    "Top-level packages that import statements name."
    for node in nodes:
        if isinstance(node, ast.Import): yield from (a.name.split('.')[0] for a in node.names)
        if isinstance(node, ast.ImportFrom) and not node.level: yield node.module.split('.')[0]

_HEAVY = {'torch', 'trl', 'transformers', 'peft', 'datasets', 'unsloth', 'vllm', 'ipywidgets', 'matplotlib', 'seaborn', 'papermill'}

@pytest.mark.parametrize('path', EXPORTING, ids=ids)
def test_heavy_packages_load_inside_functions(path):
    for cell in exported(load(path)):
        body = ast.parse(cell).body
        assert not set(packages(body)) & _HEAVY
        assert not [node for node in body if isinstance(node, ast.ImportFrom) and node.names[0].name == '*']

_SLOW = _HEAVY | {'polars', 'pandas', 'numpy', 'scipy', 'sklearn', 'lightgbm', 'pydantic', 'reasoning_gym', 'rich', 'nbdev', 'fastcore'}
_HELP = 'from sandsmith.run.cli import main\ntry: main(["--help"])\nexcept SystemExit: pass'

@pytest.mark.parametrize('line', ['import sandsmith', _HELP], ids=['import', 'help'])
def test_help_loads_nothing_slow(line):
    code = f'{line}\nimport sys; print(sorted(m for m in sys.modules if "." not in m), file=sys.stderr)'
    done = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(ast.literal_eval(done.stderr.strip().splitlines()[-1]))
    assert not loaded & _SLOW

def test_library_does_not_need_its_tools():
    for path in (ROOT/'sandsmith').rglob('*.py'):
        names = set(packages(ast.walk(ast.parse(path.read_text(encoding='utf-8')))))
        assert not names & {'nbdev', 'fastcore', 'execnb', 'pytest', 'hypothesis', 'smalldocs'}, path

def test_one_module_alone_reads_private_files():
    "Who opens files under private/ could leak answers, so one module does; author and export only write such folders."
    def mentions(path):
        tree = ast.parse(path.read_text(encoding='utf-8'))
        docs = {id(n.body[0].value) for n in ast.walk(tree)
            if isinstance(n, ast.Module | ast.ClassDef | ast.FunctionDef) and n.body and isinstance(n.body[0], ast.Expr)}
        return [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
            and id(n) not in docs and re.search(r'(^|[/\s\'"])private([/\'"]|$)', n.value)]
    found = {p.relative_to(ROOT/'sandsmith').as_posix() for p in (ROOT/'sandsmith').rglob('*.py') if p.name != '_modidx.py' and mentions(p)}
    assert found <= {'sand/grade.py', 'sand/author.py', 'sand/export.py'}

# --- sizes

@pytest.mark.parametrize('path', NOTEBOOKS, ids=ids)
def test_sizes(path):
    nb, is_pipeline = load(path), path.parent.name == 'pipeline'
    cells = exported(nb)
    assert path.stat().st_size <= 300_000 and len(nb['cells']) <= (25 if is_pipeline else 80)
    lines = [[x for x in cell.splitlines() if not x.startswith('#|')] for cell in cells]
    assert sum(map(len, lines)) <= 400
    for cell, n in zip(cells, map(len, lines)):
        is_class = [type(node) for node in ast.parse(cell).body] == [ast.ClassDef]
        assert n <= (60 if is_class else 40), cell[:200]
        for node in ast.walk(ast.parse(cell)):
            n_lines = getattr(node, 'end_lineno', 0) - getattr(node, 'lineno', 0) + 1
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef): assert n_lines <= 40, node.name
            if isinstance(node, ast.ClassDef): assert n_lines <= 60, node.name

@pytest.mark.parametrize('path', sorted((ROOT/'nbs'/'pipeline').glob('*.ipynb')), ids=ids)
def test_pipeline_notebooks_only_tell(path):
    nb = load(path)
    assert [source(c) for c in code_cells(nb) if 'parameters' in c['metadata'].get('tags', [])]
    for cell in code_cells(nb):
        for node in ast.walk(ast.parse(source(cell))):
            if isinstance(node, ast.FunctionDef): assert node.end_lineno - node.lineno < 5, f'{node.name}: move it into the library'

@pytest.mark.parametrize('path', EXPORTING, ids=ids)
def test_layout(path):
    nb = load(path)
    first, second = source(nb['cells'][0]), source(nb['cells'][1])
    assert first.startswith('#| default_exp') and re.match(r'# .+\n+> .+', second)
    titles = [t for c in nb['cells'] if c['cell_type'] == 'markdown' for t in re.findall(r'^## (.+)', source(c), re.M)]
    assert titles[-1] == 'What this does not cover' and 'nbdev_export(' in source(nb['cells'][-1])

@pytest.mark.parametrize('path', NOTEBOOKS, ids=ids)
def test_lessons_really_fail_when_they_should(path):
    "`expect_fail(lambda: …)` calls nothing and `expect_fail()` passes on a typo: only `with expect_fail(SomeError, …)` tests anything."
    for cell in code_cells(load(path)):
        bare = [line for line in source(cell).splitlines() if 'expect_fail(' in line and not re.search(r'\bwith .*expect_fail\(\w', line)]
        assert bare == []

# --- outputs

@pytest.mark.parametrize('path', NOTEBOOKS, ids=ids)
def test_outputs_hold_no_trace_of_a_machine(path):
    for cell in code_cells(load(path)):
        text = json.dumps([{k: v for k, v in (o.get('data') or o).items() if not k.startswith('image/')} for o in cell['outputs']])
        assert not re.search(r'\bat 0x[0-9a-f]{6,}|(?<![\w.])/(home|root|tmp|work|usr|opt|var|Users)/', text)
        assert '"output_type": "error"' not in json.dumps(cell['outputs'])

# --- generated files are those of the notebooks

@pytest.fixture(scope='module')
def fresh(tmp_path_factory):
    "A copy of the checkout in which nbdev exported and cleaned everything."
    root = tmp_path_factory.mktemp('fresh')/'sandsmith'
    root.mkdir()
    for name in ('nbs', 'sandsmith', 'settings.ini', 'pyproject.toml', 'setup.py', 'README.md'):
        from_path, skip = ROOT/name, shutil.ignore_patterns('__pycache__', '.ipynb_checkpoints', 'sidebar.yml', 'nbdev.yml')
        if from_path.is_dir(): shutil.copytree(from_path, root/name, ignore=skip)
        elif from_path.exists(): shutil.copy(from_path, root/name)
    env = {**os.environ, 'PYTHONPATH': str(root)}
    for command in ('nbdev_export', 'nbdev_clean'): subprocess.run([BIN/command], cwd=root, env=env, check=True, capture_output=True)
    return root

def files(root, folder, *endings):
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in (root/folder).rglob('*')
        if p.suffix in endings and not {'__pycache__', '.ipynb_checkpoints'} & set(p.parts)}

def changed(before, after): return sorted(n for n in before.keys() | after.keys() if before.get(n) != after.get(n))

def test_export_leaves_no_diff(fresh):
    assert changed(files(ROOT, 'sandsmith', '.py'), files(fresh, 'sandsmith', '.py')) == []
    for name in ('pyproject.toml', 'settings.ini'): assert (ROOT/name).read_text() == (fresh/name).read_text()

def test_clean_leaves_no_diff(fresh):
    assert changed(files(ROOT, 'nbs', '.ipynb'), files(fresh, 'nbs', '.ipynb')) == []

def test_readme_is_that_of_the_index_notebook():
    sys.path.insert(0, str(ROOT/'scripts'))
    try: from build_readme import readme
    finally: sys.path.pop(0)
    assert (ROOT/'README.md').read_text(encoding='utf-8') == readme()
    for link in re.findall(r'\]\((?!\w+:|#)([^)#]+)', readme()): assert (ROOT/link).exists(), link

# --- the project's settings

def requirements(key):
    parser = ConfigParser(delimiters=['='])
    parser.read(ROOT/'settings.ini', encoding='utf-8')
    return [re.match(r'[\w.-]+', line)[0] for line in parser['DEFAULT'][key].split('\n') if line.strip()]

def test_installed_package_is_what_settings_say():
    meta = importlib.metadata.metadata('sandsmith')
    needs = {re.match(r'[\w.-]+', r)[0].lower().replace('_', '-') for r in meta.get_all('Requires-Dist') if 'extra ==' not in r}
    assert needs == {r.lower().replace('_', '-') for r in requirements('requirements')}

def test_docs_say_why_each_dependency_is_there():
    page = json.dumps(load(ROOT/'nbs'/'tutorials'/'dependencies.ipynb'))
    assert [r for key in ('requirements', 'dev_requirements', 'gpu_requirements', 'real_requirements') for r in requirements(key) if f'`{r}`' not in page] == []

def test_top_level_holds_the_usual_files_only():
    listed = subprocess.run(['git', 'ls-files'], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode: pytest.skip('not a git checkout')
    allowed = {'nbs', 'sandsmith', 'settings.ini', 'data', 'reports', 'tests', 'scripts', '.ci', 'Makefile', 'setup.py', 'pyproject.toml',
        'README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'LICENSE', 'llms.txt', '.gitignore', '.gitattributes'}
    names = {line.split('/')[0] for line in listed.stdout.splitlines()}
    assert names <= allowed
    assert [n for n in listed.stdout.splitlines() if (ROOT/n).exists() and (ROOT/n).stat().st_size > 1_000_000] == []
