"Package metadata comes from settings.ini, the one place to edit it"
from configparser import ConfigParser
from pathlib import Path

from setuptools import find_packages, setup

root = Path(__file__).parent
parser = ConfigParser(delimiters=['='])
parser.read(root/'settings.ini', encoding='utf-8')
cfg = parser['DEFAULT']

def listed(key): return [line.strip() for line in cfg.get(key, '').splitlines() if line.strip()]

readme = root/'README.md'
setup(
    name=cfg['lib_name'], version=cfg['version'], description=cfg['description'], keywords=cfg['keywords'],
    author=cfg['author'], author_email=cfg['author_email'], url=cfg['git_url'], license='Apache-2.0',
    classifiers=['Programming Language :: Python :: 3', 'Framework :: Jupyter', f'Intended Audience :: {cfg["audience"]}'],
    packages=find_packages(include=['sandsmith', 'sandsmith.*']), include_package_data=True,
    python_requires=f'>={cfg["min_python"]}', install_requires=listed('requirements'),
    extras_require={'dev': listed('dev_requirements'), 'gpu': listed('gpu_requirements'), 'real': listed('real_requirements')},
    long_description=readme.read_text(encoding='utf-8') if readme.exists() else '', long_description_content_type='text/markdown',
    entry_points={'console_scripts': listed('console_scripts'), 'nbdev': [f'{cfg["lib_path"]}={cfg["lib_path"]}._modidx:d']},
)
