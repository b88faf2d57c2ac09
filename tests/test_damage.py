"Files that somebody tore: one line that names the file or a reported problem, never a traceback, and what can be made again is"
import json, shutil, subprocess
import pytest
import sandsmith.run.cli as cli
from sandsmith.core import RunError, SpecError, TrainError, read_json
from sandsmith.look.frames import read_record
from sandsmith.rl.grpo import read_journal
from sandsmith.rl.train import _once
from sandsmith.run.stages import play_episode
from sandsmith.sand.corpus import build_corpus, load_corpus
from sandsmith.sand.verify import check_files

@pytest.fixture
def shell(capsys):
    def run(*args):
        with pytest.raises(SystemExit) as stop: cli.main([str(a) for a in args])
        out, err = capsys.readouterr()
        assert err == '' or (err.startswith('sandsmith: ') and err.count('\n') == 1)
        return stop.value.code, out, err
    return run

@pytest.fixture(scope='module')
def sound(tmp_path_factory):
    return build_corpus(tmp_path_factory.mktemp('sound')/'corpus', n=1, seed=3, workers=1).dir

@pytest.fixture
def corpus(sound, tmp_path):
    shutil.copytree(sound, tmp_path/'corpus')
    return tmp_path/'corpus'

def contents(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob('*') if p.is_file() and p.name != 'timings.parquet'}

_TORN = {'half': b'{"seed": 3, "n', 'empty': b'', 'list': b'[]', 'null': b'null', 'object': b'{}', 'nested': b'['*100_000, 'no UTF-8': b'"\xff"'}

@pytest.mark.parametrize('name,text', [('corpus.json', text) for text in _TORN.values()] + [('split.json', b'[]'), ('split.json', b'{"train": 3}'), ('funnel.parquet', b'PAR1')])
def test_torn_files_of_a_corpus_are_named(shell, corpus, name, text):
    (corpus/name).write_bytes(text)
    with pytest.raises(SpecError, match=f'{name}.*resume its build'): load_corpus(corpus)
    assert shell('sand', 'stats', corpus)[0] == 2
    code, out, _ = shell('sand', 'verify', corpus, '--json')
    assert code == 1 and [p['code'] for p in json.loads(out)['problems']] == ['broken_corpus'] and name in out

@pytest.mark.parametrize('text', _TORN.values(), ids=_TORN)
def test_a_torn_task_does_not_hide_the_others(shell, corpus, text):
    task = load_corpus(corpus).tasks[0]
    listed = read_json(corpus/'corpus.json')
    shutil.copytree(task.dir, corpus/'tasks'/'torn')
    (corpus/'tasks'/'torn'/'task.json').write_bytes(text)
    (corpus/'corpus.json').write_text(json.dumps({**listed, 'tasks': [{'task_id': 'torn'}, *listed['tasks']]}))
    (corpus/'split.json').write_text(json.dumps({'train': [task.task_id], 'validation': ['torn']}))
    code, out, _ = shell('sand', 'verify', corpus, '--json')
    found = json.loads(out)
    assert code == 1 and found['n_tasks'] == 2 and [(p['task'], p['code']) for p in found['problems']] == [('torn', 'broken_task')]
    for command in (('stats', corpus), ('show', corpus/'tasks'/'torn')): assert shell('sand', *command)[0] == 2

def test_a_split_or_a_folder_that_does_not_fit_is_reported(shell, corpus):
    task_id = load_corpus(corpus).tasks[0].task_id
    (corpus/'split.json').write_text(json.dumps({'train': [task_id], 'validation': [task_id]}))
    (corpus/'tasks'/'stray').mkdir()
    code, out, _ = shell('sand', 'verify', corpus, '--json')
    found = json.loads(out)
    assert code == 1 and found['n_tasks'] == 1 and [p['code'] for p in found['problems']] == ['broken_corpus']*2
    assert 'in one part' in out and 'stray' in out

def test_a_page_that_is_no_text_is_named(shell, corpus):
    task = load_corpus(corpus).tasks[0]
    (task.public_dir/'description.md').write_bytes(b'\xff')
    code, _, err = shell('sand', 'show', task.dir)
    assert code == 2 and 'description.md' in err
    assert shell('sand', 'verify', task.dir)[0] == 1

def test_resuming_makes_again_what_was_torn(shell, corpus, sound):
    resume = ('sand', 'generate', '--out', corpus, '--n', 1, '--seed', 3, '--workers', 1, '--resume')
    for name, text in (('funnel.parquet', b'PAR1'), ('corpus.json', b'null'), ('split.json', b'[]')): (corpus/name).write_bytes(text)
    with pytest.raises(RunError, match='another seed'): build_corpus(corpus, n=1, seed=4, workers=1)
    assert shell(*resume)[0] == 0 and contents(corpus) == contents(sound)

def test_resuming_takes_torn_outcomes_for_none(shell, corpus, sound):
    resume = ('sand', 'generate', '--out', corpus, '--n', 1, '--seed', 3, '--workers', 1, '--resume')
    settings = {k: read_json(corpus/'corpus.json')[k] for k in ('seed', 'modalities', 'versions')}
    for path in corpus.glob('*.*'): path.unlink()
    (corpus/'.state').mkdir()
    for name, text in (('settings.json', json.dumps(settings)), ('000000.json', '[]'), ('000001.json', '{"index": "x"}'), ('000002.json', '{')): (corpus/'.state'/name).write_text(text)
    assert shell(*resume)[0] == 0 and contents(corpus) == contents(sound)
    (corpus/'.state').mkdir()
    (corpus/'.state'/'settings.json').write_text('{"seed"')
    assert shell(*resume)[0] == 0 and contents(corpus) == contents(sound)

@pytest.mark.parametrize('error,said', [(OSError(28, 'No space left on device'), 'no space left on the disk of'), (MemoryError(), 'MemoryError')])
def test_a_build_that_stops_says_why(shell, tmp_path, monkeypatch, error, said):
    def fail(*args): raise error
    monkeypatch.setattr('sandsmith.sand.corpus.calibrate', fail)
    code, _, err = shell('sand', 'generate', '--out', tmp_path/'c', '--n', 1, '--workers', 1)
    assert code == 1 and said in err and (said == 'MemoryError' or '--resume' in err)

def test_a_worker_that_is_killed_is_one_line(shell, tmp_path, monkeypatch):
    monkeypatch.setattr('sandsmith.sand.corpus._process_candidate', die)
    code, _, err = shell('sand', 'generate', '--out', tmp_path/'c', '--n', 2, '--workers', 2)
    assert code == 1 and 'a worker was killed' in err and '--resume' in err

def test_a_disk_that_is_really_full_keeps_what_is_whole(tmp_path):
    disk = tmp_path/'disk'
    disk.mkdir()
    if subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=250k', 'none', disk], capture_output=True).returncode: pytest.skip('may not mount a small disk')
    try:
        with pytest.raises(RunError, match='no space left on the disk of .*--resume'): build_corpus(disk/'c', n=6, seed=3, modalities=['tabular'], workers=1)
        left = list((disk/'c'/'tasks').iterdir())
        assert left and all(not any(check_files(d, read_json(d/'task.json'))) for d in left) and not (disk/'c'/'corpus.json').exists()
    finally: subprocess.run(['umount', disk], check=True)

def die(*args):
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)

# --- records of a run

def test_a_torn_record_is_named_with_what_to_do(tmp_path):
    (tmp_path/'records').mkdir()
    (tmp_path/'records'/'tasks.parquet').write_bytes(b'PAR1')
    with pytest.raises(RunError, match='tasks.parquet.*take the stage'): read_record(tmp_path, 'tasks')
    (tmp_path/'rollouts.jsonl').write_text('{"step": 1}\n{"st\n{"step": 3}\n')
    with pytest.raises(TrainError, match='rollouts.jsonl.*remove the folder'): read_journal(tmp_path/'rollouts.jsonl')
    (tmp_path/'heldout_base.json').write_text('[{"stage"')
    with pytest.raises(TrainError, match='heldout_base.json.*remove it'): _once(tmp_path/'heldout_base.json', list)
    (tmp_path/'episode.json').write_text('[]')
    with pytest.raises(RunError, match='episode.json.*remove it'): play_episode(None, 'constant', tmp_path/'episode.json', seed=0)
