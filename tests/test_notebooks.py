"Every notebook in nbs/ is a test, run the way nbdev_test runs it"
from pathlib import Path
import pytest
from nbdev.config import get_config
from nbdev.doclinks import nbglob
from nbdev.test import test_nb as run_notebook

cfg = get_config()

def name_of(path): return Path(path).absolute().relative_to(cfg.nbs_path.absolute()).as_posix()

@pytest.mark.parametrize('path', sorted(nbglob(as_path=True)), ids=name_of)
def test_notebook(path):
    is_ok, _ = run_notebook(Path(path).absolute(), skip_flags=cfg.tst_flags.split(), basepath=cfg.config_path)
    assert is_ok, 'the traceback is in the captured stderr'
