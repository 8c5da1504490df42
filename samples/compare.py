"""Migrates the samples, trains original and migrated script, compares them.

    python -m samples.compare                     all five samples
    python -m samples.compare digits_session      one of them

Every script is run twice. With dropout 0 nothing is random but what the seed
fixes, so original and migrated script must print the same loss at every logged
step. With the default dropout the two may draw different random masks, so only the
accuracy at the end is compared. npu-shim verify does not replace this: it draws the
masks of the original in both scripts and watches every update, so it shows neither
the kernels of npu_shim nor the accuracy of a script that runs as users run it. Exit code 0: everything within the stated
tolerance; 1: something was not, or a script failed; 2: wrong usage.
"""
from __future__ import annotations

import argparse
import math
import pathlib
import shutil
import subprocess
import sys
from typing import NamedTuple, Sequence

from samples.training import ROOT, Run, SampleError, Training, train_side_by_side

HERE = ROOT / 'samples'
BUILD = ROOT / 'build' / 'samples'
TOOL = ROOT / 'tools' / 'convert_tf2npu' / 'main.py'


class Sample(NamedTuple):
    """The facts about a sample, and how close its two scripts must be."""
    name: str
    loss_tolerance: float      # largest difference of a logged loss, dropout 0
    accuracy_tolerance: float  # largest difference of the accuracy, default dropout
    min_accuracy: float


# Losses: original and migrated script differ in the session config, which switches
# graph rewriting off and with it the fusing of ops, and in gelu, which has a gradient
# of its own. Either changes the last bits of a float32 and training carries that on;
# measured 0 for the digits and up to 6e-7 for the text, with TensorFlow 1.15 to 2.21.
# A wrong seed, batch or gradient shows as 1e-2 and more.
# Accuracies: two runs with different dropout masks differ by 0.007 (digits, one
# standard deviation, 360 test images) and 0.002 (text, about 40,000 characters).
SAMPLES = (
    Sample('digits_estimator', 1e-5, 0.02, 0.95),
    Sample('digits_session', 1e-5, 0.02, 0.95),
    Sample('text_keras', 1e-5, 0.01, 0.50),
    Sample('digits_fit', 1e-5, 0.02, 0.95),
    Sample('digits_loop', 1e-5, 0.02, 0.95),
)


def largest_difference(a: Run, b: Run) -> float:
    """Largest absolute difference of the losses over all logged steps.

    Raises:
        SampleError: the runs did not log the same steps, or a loss is not finite.
    """
    if a.losses.keys() != b.losses.keys():
        raise SampleError('the runs logged different steps: only one of them has %s'
                          % sorted(a.losses.keys() ^ b.losses.keys()))
    for step in a.losses:  # before max(), whose result with a NaN depends on the order
        if not (math.isfinite(a.losses[step]) and math.isfinite(b.losses[step])):
            raise SampleError('the loss at step %d is %s and %s, which is not a number' % (
                step, a.losses[step], b.losses[step]))
    return max(abs(a.losses[step] - b.losses[step]) for step in a.losses)


def migrate(name: str, out: pathlib.Path) -> tuple[pathlib.Path, str]:
    """Runs the migration tool on a sample; returns the migrated script and what the tool said.

    Raises:
        SampleError: the tool failed or wrote nothing.
    """
    if out.exists():
        shutil.rmtree(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, str(TOOL), '-i', str(HERE / name / 'original.py'), '-o', str(out)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          universal_newlines=True)
    script = out / 'original.py'
    if done.returncode != 0 or not script.exists():
        raise SampleError('%s ended with code %d and %s\n%s' % (
            ' '.join(command), done.returncode,
            'wrote %s' % script if script.exists() else 'did not write %s' % script,
            done.stdout))
    return script, done.stdout


class Row(NamedTuple):
    """A sample's four runs."""
    sample: Sample
    original: Run              # dropout 0
    migrated: Run
    original_with_dropout: Run
    migrated_with_dropout: Run

    def complaints(self) -> list[str]:
        """Return the values out of tolerance, each with what is allowed."""
        sample, found = self.sample, []
        difference = largest_difference(self.original, self.migrated)
        if difference > sample.loss_tolerance:
            worst = max(self.original.losses, key=lambda step: abs(
                self.original.losses[step] - self.migrated.losses[step]))
            found.append('%s: at step %d the losses are %.8f and %.8f; they may differ by %g' % (
                sample.name, worst, self.original.losses[worst], self.migrated.losses[worst],
                sample.loss_tolerance))
        accuracies = self.original_with_dropout.accuracy, self.migrated_with_dropout.accuracy
        if abs(accuracies[0] - accuracies[1]) > sample.accuracy_tolerance:
            found.append('%s: the accuracies are %.4f and %.4f; they may differ by %g' % (
                (sample.name,) + accuracies + (sample.accuracy_tolerance,)))
        if min(accuracies) < sample.min_accuracy:
            found.append('%s: the accuracies are %.4f and %.4f; at least %g is expected' % (
                (sample.name,) + accuracies + (sample.min_accuracy,)))
        return found


def compare(sample: Sample) -> Row:
    """Migrates one sample and runs both scripts with and without dropout."""
    folder = BUILD / sample.name
    original = HERE / sample.name / 'original.py'
    migrated, said = migrate(sample.name, folder / 'migrated')
    print('\n%s: migrated to %s' % (sample.name, migrated.relative_to(ROOT)))
    print('  %s' % said.strip().splitlines()[-1])
    runs: list[Run] = []
    for title, flags in (('dropout 0', ['--dropout=0']), ('default dropout', [])):
        both = [Training(script, flags, folder / ('%s_%s.log' % (kind, title)).replace(' ', '_'))
                for kind, script in (('original', original), ('migrated', migrated))]
        runs.extend(train_side_by_side(both[0], both[1], title))
    return Row(sample, *runs)


def table(rows: Sequence[Row]) -> str:
    """The figures of all samples, and below them what each column means."""
    head = ('%-17s  %-34s  %-16s  %s\n' % ('', 'loss with dropout 0', 'accuracy', 'seconds')
            + '%-17s  %10s %10s %12s  %8s %8s  %8s %8s' % (
                'sample', 'original', 'migrated', 'largest diff',
                'original', 'migrated', 'original', 'migrated'))
    lines = [head]
    for row in rows:
        lines.append('%-17s  %10.8f %10.8f %12.1e  %8.4f %8.4f  %8.1f %8.1f' % (
            row.sample.name, row.original.final_loss, row.migrated.final_loss,
            largest_difference(row.original, row.migrated),
            row.original_with_dropout.accuracy, row.migrated_with_dropout.accuracy,
            row.original.seconds + row.original_with_dropout.seconds,
            row.migrated.seconds + row.migrated_with_dropout.seconds))
    steps = ', '.join('%d' % len(row.original.losses) for row in rows)
    return '\n'.join(lines) + (
        '\n\nloss: at the last logged step, both scripts run with --dropout=0 and the same seed;\n'
        'largest diff: over all logged steps (%s of them) of these two runs.\n'
        'accuracy: on the test set, of a second pair of runs with the default dropout, in which\n'
        'the two may draw different random masks. seconds: of the two runs of a script together,\n'
        'the start of TensorFlow included, while those of the other script share the processors.'
        % steps)


def main(argv: Sequence[str] | None = None) -> int:
    names = [sample.name for sample in SAMPLES]
    parser = argparse.ArgumentParser(
        prog='python -m samples.compare', description=(__doc__ or '').split('\n')[0])
    parser.add_argument('samples', nargs='*', metavar='SAMPLE',
                        help='one or more of %s; all when none is given' % ', '.join(names))
    chosen = parser.parse_args(argv).samples or names
    unknown = sorted(set(chosen) - set(names))
    if unknown:
        parser.error('no such sample: %s; there are %s' % (', '.join(unknown), ', '.join(names)))
    try:
        rows = [compare(sample) for sample in SAMPLES if sample.name in chosen]
        complaints = [text for row in rows for text in row.complaints()]
        print('\n' + table(rows) + '\n')
    except SampleError as error:
        print('\nsamples/compare.py: %s' % error, file=sys.stderr)
        return 1
    for text in complaints:
        print('NOT EQUAL: ' + text, file=sys.stderr)
    if not complaints:
        print('Original and migrated scripts agree within the tolerance of every sample.')
    return 1 if complaints else 0


if __name__ == '__main__':
    sys.exit(main())
