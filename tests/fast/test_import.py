"""Imports bind names and do nothing else."""

from __future__ import annotations

import ast
import functools
import subprocess
import sys

import pytest

import npu_shim


def python(code, root):
    """Runs code in a new Python at the root of the checkout; what it prints."""
    return subprocess.run(
        [sys.executable, "-c", code], cwd=str(root), check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def test_importing_the_package_loads_neither_tensorflow_nor_its_own_modules(repo_root):
    code = (
        "import sys, npu_shim; print({'tensorflow', 'numpy', 'npu_bridge', 'dataclasses'} & set(sys.modules),"
        "sorted(name for name in sys.modules if name.startswith('npu_shim')))"
    )
    assert python(code, repo_root) == "set() ['npu_shim', 'npu_shim._host', 'npu_shim._host.lazy_names']\n"


def test_device_options_and_environment_need_no_tensorflow(repo_root):
    code = (
        "import sys, npu_shim, npu_shim.options.check, npu_shim._host.host_env; npu_shim.device();"
        "import npu_shim.config.nested, npu_shim.hccl.manage.api, npu_shim.hccl.split.api;"
        "from npu_shim.distributed.ranks import world; world();"
        "from npu_shim.distributed.ranktable import validate, generate, writer;"
        "print('tensorflow' in sys.modules)"
    )
    assert python(code, repo_root).split() == ["False"]


def test_the_start_of_a_script_loads_no_tensorflow_before_it(repo_root):
    """A script may set variables and import Keras first."""
    modules = (
        "cli.run",
        "rehearsal.progress.watched_rank",
        "cli._progress",
        "import_hook.script",
        "rehearsal.progress.start",
    )
    code = f"import sys, {', '.join('npu_shim.' + name for name in modules)}; print('tensorflow' in sys.modules)"
    assert python(code, repo_root).split() == ["False"]


def test_public_names_are_explicit():
    assert npu_shim.__all__ == ["__version__", "device", "install", "session_config", "uninstall"]
    assert set(npu_shim.__all__) <= set(dir(npu_shim))
    with pytest.raises(AttributeError, match="has no attribute 'sesion_config'; it offers __version__, device"):
        npu_shim.sesion_config


def sources(root):
    """The modules of the package by their path below it."""
    package = root / "npu_shim"
    return {path.relative_to(package).as_posix(): path for path in sorted(package.rglob("*.py"))}


@functools.lru_cache(maxsize=None)
def trees(root):
    """The syntax tree of each module."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in sources(root).items()}


@pytest.mark.once
def test_private_tensorflow_modules_are_imported_in_one_package_only(repo_root):
    """The star import is an exception: it exports two private names."""
    exported = {"tensorflow.python.client", "tensorflow.python.training"}
    for name, tree in trees(repo_root).items():
        for node in ast.walk(tree):
            modules = (
                [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else ([a.name for a in node.names] if isinstance(node, ast.Import) else [])
            )
            private = [m for m in modules if m.startswith("tensorflow.python")]
            allowed = name.startswith("_tensorflow/") or (name == "npu_init.py" and set(private) <= exported)
            assert allowed or not private, f"{name} imports {private}"


# Private attributes of other packages outside _tensorflow. docs/decisions.md has the reasons.
PRIVATE = {
    "launching/fork_process.py": {"_exit"},
    "cli/_parser.py": {"_option_string_actions"},  # the options of a parser
    "cli/ranktable.py": {"_SubParsersAction"},  # the type of argparse.add_subparsers, for an annotation
    "estimator/static_batches.py": {"_extract_batch_length"},  # of its parent class, which predict() replaces
    "launching/host_rank.py": {"_exit"},
    "launching/progress/display.py": {"_exit"},
    "cli/_guard.py": {"_exit"},
    "rehearsal/files/file_watch.py": {"_NormalAccessor"},  # of pathlib, which has copies of functions of os before 3.11
    "rehearsal/recording/entropy.py": {"_urandom"},  # of random, from which SystemRandom, secrets and NumPy draw
    "rehearsal/bounded_exit.py": {"_exit"},
    "rehearsal/recording/limit.py": {"_exit"},
    "rehearsal/recording/writer.py": {"_exit"},
    "import_hook/hook.py": {"_get_code_from_file"},  # runpy.run_path has no hook
    "import_hook/script.py": {"_run_module_as_main"},  # as python -m does
    "training/strategy.py": {"_strategy", "_container_strategy", "_device"},  # of its parent class, as tf.distribute's
}
NAMED_TUPLE = {"_asdict", "_fields", "_replace"}


def own_names(tree):
    """The private names that a module defines: functions, classes, attributes of self and of classes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
                yield node.attr
        elif isinstance(node, (ast.AnnAssign, ast.Assign)):
            targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
            yield from (one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name))


def private_names(tree):
    """The private attributes that a module reads or sets, and True for those of self."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            name, of = node.attr, node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "setattr", "hasattr", "delattr")
            and type(node.args[1]).__name__ in ("Constant", "Str")  # Str in Python 3.7
        ):
            name, of = str(ast.literal_eval(node.args[1])), node.args[0]
        else:
            continue
        is_package = isinstance(of, ast.Name) and of.id == "npu_shim"
        if name == "_getframe":
            continue  # see FRAMES
        if name.startswith("_") and not name.startswith("__") and not is_package and name not in NAMED_TUPLE:
            yield name, (isinstance(of, ast.Name) and of.id in ("self", "cls")) or isinstance(of, ast.Call)


@pytest.mark.once
def test_private_attributes_are_used_in_one_package_only(repo_root):
    found = trees(repo_root)
    own = {name: set(own_names(tree)) for name, tree in found.items()}
    anywhere = set().union(*own.values())
    for module, tree in found.items():
        if not module.startswith("_tensorflow/"):
            foreign = {
                name for name, of_self in private_names(tree) if name not in (anywhere if of_self else own[module])
            }
            assert foreign <= PRIVATE.get(module, set()), f"{module} uses private attributes {sorted(foreign)}"


@pytest.mark.once
def test_the_environment_is_accessed_by_its_module_only(repo_root):
    for module, tree in trees(repo_root).items():
        used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)} & {
            "environ",
            "environb",
            "getenv",
            "putenv",
        }
        assert module == "_host/host_env.py" or not used, f"{module} uses os.{sorted(used)}"


# Modules that look at frames. docs/decisions.md has the reasons.
FRAMES = {
    "_tensorflow/script_frames.py",
    "data/reading_call.py",
    "import_hook/script.py",
    "rehearsal/observing/observation.py",
    "rehearsal/recording/entropy.py",
    "training/strategy_data.py",
}


@pytest.mark.once
def test_no_module_inspects_the_stack(repo_root):
    words = {"_getframe", "currentframe", "extract_stack", "walk_stack", "f_back", "tb_frame", "getouterframes"}
    for module, tree in trees(repo_root).items():
        used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)} & words
        assert module in FRAMES or not used, f"{module} inspects the stack: {sorted(used)}"


# All mutable state of a process. docs/decisions.md explains each.
STATE = {
    "_host/host_device.py": {"_import_failure_text", "_warn_of_cpu_once"},
    "_tensorflow/script_frames.py": {"is_library"},
    "_tensorflow/tf_op_creation.py": {"_HOOKS", "_ORIGINALS"},
    "_tensorflow/tf_op_forms.py": {"_default_attributes", "_inferred_attributes"},
    "_tensorflow/patches.py": {"_original_attributes", "_to_undo"},
    "_tensorflow/tf_threads.py": {"_parallelism_getter_and_setter"},
    "ops/xla.py": {"_can_compile"},
    "config/open_sessions.py": {"_process_of"},
    "data/training_passes.py": {"_optimizers"},
    "distributed/backend.py": {"_backend"},
    "distributed/collective_op.py": {"_register_gradient"},
    "distributed/collectives/arrays.py": {"_numeric_name"},
    "distributed/gradient_buckets.py": {"_ends", "_percentages"},
    "distributed/graph_consistency.py": {"_graphs", "_graph_count"},
    "distributed/groups.py": {"_groups"},
    "distributed/ranktable/reader.py": {"_read_version"},
    "distributed/remote_memory.py": {"_memories", "_names"},
    "distributed/shm/rank_lock.py": {"_held"},
    "npu_device/distribute/npu_callbacks.py": {"broadcast_registry"},
    "npu_device/train/optimizer/npu_loss_scale_optimizer.py": {"_class_with_agreement"},
    "npu_device/train/replacement.py": {"_ranges"},
    "npu_device/utils/npu_wrapper.py": {"_symbols"},
    "ops/batch_queue.py": {"_queues"},
    "ops/embedding_tables.py": {"_tables"},
    "ops/feature_mapping.py": {"_tables"},
    "optimizer/gradient_shares.py": {"_items", "_values"},
    "rehearsal/observing/doubles.py": {"doubles_of_run"},
    "rehearsal/observing/plain_layers.py": {"_instructions_of", "_is_file_of_script"},
    "rehearsal/observing/steps.py": {"_called", "_trials"},
    "rehearsal/recording/entropy.py": {"_name_assignments"},
    "troubles/logs.py": {"_search_patterns"},
    "troubles/table.py": {"topic_titles", "troubles"},
}


def state(tree):
    """The module-level names that a module can change: empty containers, names it rebinds, and caches."""
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            value = node.value
            empty = (isinstance(value, ast.Dict) and not value.keys) or (isinstance(value, ast.List) and not value.elts)
            weak = isinstance(value, ast.Call) and "Dictionary" in ast.dump(value.func)
            if isinstance(target, ast.Name) and (empty or weak):
                yield target.id
        elif isinstance(node, ast.FunctionDef) and any("cache" in ast.dump(one) for one in node.decorator_list):
            yield node.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names


@pytest.mark.once
def test_the_mutable_state_of_a_process_is_known(repo_root):
    for module, tree in trees(repo_root).items():
        assert set(state(tree)) <= STATE.get(module, set()), module


@pytest.mark.once
def test_every_function_has_types_and_every_public_one_a_docstring(repo_root):
    for path, tree in trees(repo_root).items():
        assert ast.get_docstring(tree), f"{path} has no docstring"
        public = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and not n.name.startswith("_")]
        for node in public:
            assert ast.get_docstring(node) or "__doc__" in ast.dump(node), f"{path}: {node.name} has no docstring"
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                arguments = node.args.posonlyargs if hasattr(node.args, "posonlyargs") else []
                arguments = arguments + node.args.args + node.args.kwonlyargs
                untyped = [a.arg for a in arguments if a.annotation is None and a.arg not in ("self", "cls")]
                assert not untyped and node.returns is not None, f"{path}: {node.name} lacks types {untyped}"


def test_the_vendors_module_paths_are_current(repo_root):
    subprocess.run([sys.executable, "docs/make_vendor_paths.py", "--check"], cwd=str(repo_root), check=True)
