"Every notebook in nbs/ is a test, run the way nbdev_test runs it"
from pathlib import Path
import pytest
from nbdev.config import get_config
from nbdev.doclinks import nbglob
from nbdev.test import test_nb as run_notebook
from sandsmith.sand import spec

cfg = get_config()

def name_of(path): return Path(path).absolute().relative_to(cfg.nbs_path.absolute()).as_posix()

@pytest.mark.parametrize('path', sorted(nbglob(as_path=True)), ids=name_of)
def test_notebook(path, monkeypatch):
    spec.load_families()
    monkeypatch.setattr(spec, '_FAMILIES', dict(spec._FAMILIES)) # a notebook may add a family of its own
    is_ok, _ = run_notebook(Path(path).absolute(), skip_flags=cfg.tst_flags.split(), basepath=cfg.config_path)
    assert is_ok, 'the traceback is in the captured stderr'
