"""Run every notebook in place, keeping outputs for the documentation, then clean and export: what `make notebooks` does.

    python scripts/run_notebooks.py [NOTEBOOK…]"""
import os, subprocess, sys, warnings
from pathlib import Path
from execnb.nbio import write_nb
from execnb.shell import CaptureShell
from fastcore.xtras import working_directory
from nbdev.config import get_config
from nbdev.doclinks import nbglob
from nbdev.process import NBProcessor

def run(path: Path, skip_flags: set[str]) -> None:
    "Run one notebook as nbdev_test would, and write its outputs."
    def is_skipped(cell) -> bool:
        directives = getattr(cell, 'directives_', None) or {}
        is_off = directives.get('eval:', [''])[0].lower() == 'false' or skip_flags & directives.keys()
        return cell.cell_type != 'code' or 'nbdev_export(' in cell.source or bool(is_off)
    nb = NBProcessor(path, rm_directives=False, process=True).nb
    shell = CaptureShell(path)
    with working_directory(path.parent): shell.run_all(nb, exc_stop=True, preproc=is_skipped)
    for cell in nb.cells: # what goes to stderr names files of this machine, and changes with every version of a library
        if cell.cell_type == 'code': cell.outputs = [o for o in cell.outputs if o.get('name') != 'stderr']
    write_nb(nb, path)

if __name__ == '__main__':
    os.environ |= {'HF_HUB_OFFLINE': '1', 'HF_HUB_DISABLE_PROGRESS_BARS': '1', 'TOKENIZERS_PARALLELISM': 'false'}
    warnings.simplefilter('ignore', FutureWarning)
    cfg = get_config()
    sys.path.insert(0, str(cfg.config_path))
    for path in map(Path, sys.argv[1:] or sorted(nbglob(as_path=True))):
        print(path, flush=True)
        run(path.absolute(), set(cfg.tst_flags.split()))
    for command in ('nbdev_clean', 'nbdev_export'): subprocess.run([Path(sys.executable).with_name(command)], check=True)
