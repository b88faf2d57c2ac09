"""README.md from nbs/index.ipynb, through nbconvert: python scripts/build_readme.py"""
import re
from pathlib import Path
import nbformat
from nbconvert import MarkdownExporter

ROOT = Path(__file__).resolve().parent.parent

def readme() -> str:
    "The text of README.md; links that start in nbs/ are made to start at the root."
    nb = nbformat.read(ROOT/'nbs'/'index.ipynb', as_version=4)
    nb.cells = [c for c in nb.cells if not re.search(r'^#\|\s*hide', c.source, re.M)]
    text, _ = MarkdownExporter(exclude_input_prompt=True, exclude_output_prompt=True).from_notebook_node(nb)
    text = re.sub(r'\]\((?!\w+:|#|/)(?:\./)?', '](nbs/', text).replace('](nbs/../', '](')
    return re.sub(r'\n{3,}', '\n\n', text).strip() + '\n'

if __name__ == '__main__': (ROOT/'README.md').write_text(readme(), encoding='utf-8')
