"Fixtures of several test files"
import pytest
import sandsmith.run.cli as cli


@pytest.fixture
def shell(capsys):
    def run(*args):
        with pytest.raises(SystemExit) as stop: cli.main([str(a) for a in args])
        out, err = capsys.readouterr()
        return stop.value.code, out, err
    return run
