"""The command: what it writes, what it says, how it ends."""
from __future__ import annotations

import os
import pathlib
import stat
import subprocess
import sys
from typing import Dict

import pytest

from convert_tf2npu.main import main

SCRIPT = 'import tensorflow as tf\n\nwith tf.Session() as sess:\n    sess.run(op)\n'
MIGRATED = ('import tensorflow as tf\nfrom npu_shim.npu_init import *\n\n'
            'with tf.Session(config=npu_config_proto()) as sess:\n    sess.run(op)\n')
OTHER = 'import requests\n\nwith requests.Session() as s:\n    s.get(url)\n'
PYTHON2 = 'import tensorflow as tf\nprint "loss", tf.Session().run(loss)\n'


def make(folder: pathlib.Path, files: Dict[str, str]) -> pathlib.Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode('utf-8'))
    return folder


@pytest.fixture
def project(tmp_path: pathlib.Path) -> pathlib.Path:
    return make(tmp_path / 'src', {'train.py': SCRIPT, 'web.py': OTHER, 'data/words.txt': 'a\n'})


def content(folder: pathlib.Path) -> Dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob('*') if p.is_file()}


def test_out_is_the_whole_tree_with_the_scripts_migrated(project, tmp_path, capsys) -> None:
    assert main(['-i', str(project), '-o', str(tmp_path / 'out')]) == 0
    assert content(tmp_path / 'out') == {'train.py': MIGRATED.encode(), 'web.py': OTHER.encode(),
                                         os.path.join('data', 'words.txt'): b'a\n'}
    assert '2 Python files read, 1 changed; 1 rewrite, 0 places left to you.' in capsys.readouterr().out


def test_without_out_a_diff_is_printed_and_nothing_written(project, capsys) -> None:
    before = content(project)
    assert main(['-i', str(project)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith('--- a/train.py\n+++ b/train.py\n@@')
    assert '+with tf.Session(config=npu_config_proto()) as sess:\n' in out
    assert '1 changed' in err
    assert content(project) == before


def test_the_diff_applies(project, tmp_path, capfdbinary) -> None:
    (project / 'crlf.py').write_bytes(SCRIPT.replace('\n', '\r\n').rstrip().encode())
    assert main(['-i', str(project)]) == 0
    out = capfdbinary.readouterr().out
    subprocess.run(['git', 'apply', '-p1', '-'], input=out, cwd=str(project), check=True)
    assert (project / 'train.py').read_bytes() == MIGRATED.encode()
    assert (project / 'crlf.py').read_bytes() == MIGRATED.replace('\n', '\r\n').rstrip().encode()


def test_converting_the_output_again_changes_nothing(project, tmp_path) -> None:
    assert main(['-i', str(project), '-o', str(tmp_path / 'once')]) == 0
    assert main(['-i', str(tmp_path / 'once'), '-o', str(tmp_path / 'twice')]) == 0
    assert content(tmp_path / 'once') == content(tmp_path / 'twice')


def test_python_2_is_copied_named_and_does_not_stop_the_rest(project, tmp_path, capsys) -> None:
    make(project, {'old/legacy.py': PYTHON2})
    assert main(['-i', str(project), '-o', str(tmp_path / 'out')]) == 2
    found = content(tmp_path / 'out')
    assert found[os.path.join('old', 'legacy.py')] == PYTHON2.encode()
    assert found['train.py'] == MIGRATED.encode()
    out = capsys.readouterr().out
    assert 'legacy.py:2:' in out and 'cannot be read' in out


def test_modes_and_links_survive(project, tmp_path) -> None:
    (project / 'train.py').chmod(0o755)
    (project / 'web.py').chmod(0o640)
    (project / 'link.py').symlink_to('train.py')
    (project / 'dangling.py').symlink_to('nowhere.py')
    (project / 'loop').symlink_to('.')
    assert main(['-i', str(project), '-o', str(tmp_path / 'out')]) == 0
    out = tmp_path / 'out'
    assert stat.S_IMODE((out / 'train.py').stat().st_mode) == 0o755
    assert stat.S_IMODE((out / 'web.py').stat().st_mode) == 0o640
    assert os.readlink(str(out / 'link.py')) == 'train.py'
    assert os.readlink(str(out / 'dangling.py')) == 'nowhere.py'
    assert os.readlink(str(out / 'loop')) == '.'


def test_a_single_script_goes_into_a_folder_or_to_a_file(project, tmp_path) -> None:
    script = str(project / 'train.py')
    assert main(['-i', script, '-o', str(tmp_path / 'folder')]) == 0
    assert (tmp_path / 'folder' / 'train.py').read_text() == MIGRATED
    assert main(['-i', script, '-o', str(tmp_path / 'new' / 'npu.py')]) == 0
    assert (tmp_path / 'new' / 'npu.py').read_text() == MIGRATED


def test_files_that_are_there_and_differ_are_not_lost(project, tmp_path, capsys) -> None:
    out = make(tmp_path / 'out', {'train.py': 'my own changes\n', 'notes.txt': 'keep\n'})
    assert main(['-i', str(project), '-o', str(out)]) == 2
    assert 'train.py' in capsys.readouterr().err
    assert content(out) == {'train.py': b'my own changes\n', 'notes.txt': b'keep\n'}
    assert main(['-i', str(project), '-o', str(out), '--force']) == 0
    assert (out / 'train.py').read_text() == MIGRATED and (out / 'notes.txt').exists()
    assert main(['-i', str(project), '-o', str(out)]) == 0  # nothing differs any more
    assert sorted(p.name for p in tmp_path.iterdir()) == ['out', 'src']  # nothing half made is left


@pytest.mark.parametrize('arguments,words', [
    (['-i', 'missing'], 'missing: there is no such file or folder'),
    (['-i', 'src', '-o', 'src'], '--in-place'),
    (['-i', 'src', '-o', 'src/out'], 'inside the source'),
    (['-i', 'src', '-o', '.'], 'holds the source'),
    (['-i', 'src', '-o', 'file.txt'], 'is no folder'),
    (['--explain', 'NPU999'], 'no rule NPU999'),
], ids=lambda value: value if isinstance(value, str) else ' '.join(value))
def test_bad_input_gets_one_clear_error_and_exit_code_2(
        arguments, words, project, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    make(tmp_path, {'file.txt': 'x'})
    before = content(tmp_path)
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert words in error and len(error.strip().splitlines()) == 1
    assert content(tmp_path) == before


@pytest.mark.parametrize('arguments,words', [
    ([], 'Give -i SRC'),
    (['-i', 'a', '-o', 'b', '--check'], 'exclude each other'),
    (['-i', 'a', '-j', '0'], 'no number of processes'),
    (['-i', 'a', '--select', 'NPU9'], 'there is no rule NPU9'),
    (['-i', 'a', '--nonsense'], 'nonsense'),
], ids=lambda value: value if isinstance(value, str) else ' '.join(value))
def test_wrong_usage_exits_with_2(arguments, words, capsys) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


def test_check_exits_with_1_when_something_would_change(project, tmp_path) -> None:
    before = content(project)
    assert main(['-i', str(project), '--check']) == 1
    assert content(project) == before
    assert main(['-i', str(project / 'web.py'), '--check']) == 0


def test_in_place_refuses_uncommitted_changes(project, capsys) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(['git', '-c', 'user.name=a', '-c', 'user.email=a@b.example'] + list(arguments),
                       cwd=str(project), check=True, stdout=subprocess.DEVNULL)
    git('init', '-q')
    git('add', '.')
    assert main(['-i', str(project), '--in-place']) == 2
    assert 'not committed' in capsys.readouterr().err
    assert (project / 'train.py').read_text() == SCRIPT
    git('commit', '-qm', 'start')
    (project / 'train.py').chmod(0o755)
    git('commit', '-qam', 'run bit')
    assert main(['-i', str(project), '--in-place']) == 0
    assert (project / 'train.py').read_text() == MIGRATED
    assert (project / 'train.py').stat().st_mode & 0o111
    (project / 'train.py').write_text(SCRIPT)
    assert main(['-i', str(project), '--in-place', '--force']) == 0
    assert (project / 'train.py').read_text() == MIGRATED


def test_version_control_and_byte_code_stay_out(project, tmp_path, capsys) -> None:
    make(project, {'.git/config': '', '__pycache__/a.pyc': '', 'env/pyvenv.cfg': '', 'env/a.py': SCRIPT})
    assert main(['-i', str(project), '-o', str(tmp_path / 'out')]) == 0
    assert set(content(tmp_path / 'out')) == {'train.py', 'web.py', os.path.join('data', 'words.txt')}
    assert 'not part of the migration: .git, env' in capsys.readouterr().out


def test_processes_give_what_one_gives(project, tmp_path) -> None:
    for number in range(20):
        make(project, {'part%d/a.py' % number: SCRIPT.replace('op', 'op%d' % number)})
    assert main(['-i', str(project), '-o', str(tmp_path / 'one'), '-j', '1']) == 0
    assert main(['-i', str(project), '-o', str(tmp_path / 'two'), '-j', '2']) == 0
    assert content(tmp_path / 'one') == content(tmp_path / 'two')


def test_rules_can_be_chosen_and_places_excepted(tmp_path, capsys) -> None:
    text = ("import tensorflow as tf\nwith tf.device('/gpu:0'):\n    tf.Session()\n"
            "    tf.Session()  # npu: ignore[NPU101]\n    tf.Session()  # npu: ignore\n")
    script = make(tmp_path, {'a.py': text}) / 'a.py'
    assert main(['-i', str(script), '--select', 'NPU110']) == 0
    out = capsys.readouterr().out
    assert "'/cpu:0'" in out and 'npu_config_proto' not in out
    assert main(['-i', str(script), '--ignore', 'npu110']) == 0
    out = capsys.readouterr().out
    assert '/cpu:0' not in out and out.count('npu_config_proto()') == 1


def test_rules_are_listed_and_explained(capsys) -> None:
    assert main(['--list-rules']) == 0
    assert 'NPU101  Give every session the NPU configuration.' in capsys.readouterr().out
    assert main(['--explain', 'npu108']) == 0
    assert 'x/2 (1 + tanh(' in capsys.readouterr().out


def test_the_command_runs_by_its_path_without_tensorflow(repo_root, project, tmp_path) -> None:
    tool = repo_root / 'tools' / 'convert_tf2npu' / 'main.py'
    done = subprocess.run([sys.executable, '-S', '-X', 'importtime', str(tool), '-i', str(project),
                           '-o', str(tmp_path / 'out')], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, cwd=str(tmp_path))
    assert done.returncode == 0, done.stderr
    for package in (b'tensorflow', b'numpy', b'absl', b'google'):
        assert b'| ' + package not in done.stderr
    assert (tmp_path / 'out' / 'train.py').read_text() == MIGRATED
