"""The files for clusters: their schemas hold, and what they start runs over two nodes, here two agents of torchrun."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
import yaml

from orrery.checkpoints.tensors import read_tensors
from orrery.laws.ranks import free_port
from programs import ORRERY

CLUSTER = Path(__file__).parents[2] / "docs" / "cluster"
SLURM, KUBERNETES = CLUSTER / "train.slurm", CLUSTER / "train-kubernetes.yaml"
RECIPE = """
name: nodes
model:
  family: llama
  config: {hidden_size: 16, intermediate_size: 32, num_hidden_layers: 2, num_attention_heads: 4, num_key_value_heads: 4}
tokenizer: {kind: character}
data: {train: TEXT}
batches: {length: 16, size: 8}
training: {steps: 60, device: cpu, precision: float32, optimizer: {kind: sgd, rate: 0.1}}
checkpoints: {every: 20, keep: 9}
"""
# The stand-in starts the command once a node, all of them here, and hands on the signal that Slurm would send.
SRUN = """#!/bin/bash
trap 'kill -TERM "${agents[@]}"' TERM
for _ in $(seq "$SLURM_NNODES"); do "$@" & agents+=($!); done
status=0
for agent in "${agents[@]}"; do
    while kill -0 "$agent" 2>/dev/null; do wait "$agent"; ended=$?; done
    [ "$ended" -eq 0 ] || status=$ended
done
exit "$status"
"""
# Options of sbatch(1), of Slurm 24.05, that stand in a script.
OPTIONS = {"job-name", "nodes", "ntasks-per-node", "gpus-per-node", "cpus-per-task", "time", "requeue", "open-mode"}
OPTIONS |= {"output", "signal", "mem", "partition", "account", "exclusive"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "text.txt").write_text("the cat sat on the mat. " * 200)
    (tmp_path / "recipe.yaml").write_text(RECIPE.replace("TEXT", str(tmp_path / "text.txt")))
    tools = {"srun": SRUN, "scontrol": "#!/bin/bash\nprintf 'localhost\\nelsewhere\\n'\n"}
    for name, text in tools.items():
        (tmp_path / "bin" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    place = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    slurm = {"SLURM_NNODES": "2", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_ID": "7", "SLURM_GPUS_ON_NODE": "1"}
    return {**os.environ, **slurm, "PATH": place, "PORT": str(free_port())}


def submitted(folder: Path, *words: str) -> subprocess.Popen[str]:
    command = ["bash", str(SLURM), "recipe.yaml", "run", *words]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=folder, env=environment(folder), text=True, stdout=pipe, stderr=pipe)


def alone(folder: Path) -> Path:
    done = subprocess.run([*ORRERY, "train", "recipe.yaml", "--output", "alone"], cwd=folder, capture_output=True)
    assert done.returncode == 0, done.stderr
    return folder / "alone"


def like(run: Path, other: Path) -> None:
    """Say that two runs end with the same weights, but for what sums of other orders round."""
    found, wanted = (read_tensors(one / "final" / "model.safetensors") for one in (run, other))
    assert found.keys() == wanted.keys()
    for name in wanted:
        torch.testing.assert_close(found[name], wanted[name], rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_the_script_of_slurm_trains_over_two_nodes_and_a_job_whose_time_is_over_goes_on(folder: Path) -> None:
    job = submitted(folder, "--parallel.fsdp", "2")
    deadline = time.monotonic() + 120
    while not list(folder.glob("run/checkpoints/step-*")) and job.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    job.send_signal(signal.SIGTERM)
    said = "".join(job.communicate(timeout=120))
    assert job.returncode != 0
    assert "stopped and saved after step" in said, said
    assert not (folder / "run" / "final").exists(), "the run had ended before it was stopped"
    again = submitted(folder, "--parallel.fsdp", "2")
    said = "".join(again.communicate(timeout=240))
    assert again.returncode == 0, said
    assert "resumed at step" in said
    like(folder / "run", alone(folder))


@pytest.mark.long
def test_what_kubernetes_starts_in_two_pods_is_one_run(folder: Path) -> None:
    job = next(one for one in documents() if one["kind"] == "Job")
    container = job["spec"]["template"]["spec"]["containers"][0]
    words = [*container["command"], *container["args"]]
    changes = {"orrery-0.orrery:29500": f"localhost:{free_port()}", "/runs/": f"{folder}/"}
    changes |= {"nproc-per-node=8": "nproc-per-node=1", "fsdp=8": "fsdp=2"}
    here = [words.pop(0), *(replaced(word, changes) for word in words)]
    pipe = subprocess.PIPE
    pods = [
        subprocess.Popen(here, cwd=folder, env=environment(folder), text=True, stdout=pipe, stderr=pipe)
        for _ in range(job["spec"]["completions"])
    ]
    said = ["".join(pod.communicate(timeout=240)) for pod in pods]
    assert [pod.returncode for pod in pods] == [0, 0], said
    like(folder / "first", alone(folder))


def replaced(word: str, changes: dict[str, str]) -> str:
    for old, new in changes.items():
        word = word.replace(old, new)
    return word


def test_the_script_of_slurm_has_options_that_there_are_and_says_what_it_needs() -> None:
    text = SLURM.read_text(encoding="utf-8")
    assert set(re.findall(r"^#SBATCH --([a-z-]+)", text, re.MULTILINE)) <= OPTIONS
    assert subprocess.run(["bash", "-n", str(SLURM)]).returncode == 0
    bare = subprocess.run(["bash", str(SLURM)], capture_output=True, text=True)
    assert bare.returncode != 0
    assert "give a recipe, the folder of the run, and settings" in bare.stderr


def test_the_pods_of_kubernetes_find_each_other_by_the_names_that_they_are_given() -> None:
    service, job = documents()
    spec, pod = job["spec"], job["spec"]["template"]["spec"]
    assert spec["completionMode"] == "Indexed"
    assert spec["completions"] == spec["parallelism"]
    assert pod["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"] == {"job-name": job["metadata"]["name"]}
    args = dict(word.removeprefix("--").split("=", 1) for word in pod["containers"][0]["args"] if "=" in word)
    assert args["nnodes"] == str(spec["completions"])
    assert args["rdzv-endpoint"].startswith(f"{job['metadata']['name']}-0.{service['metadata']['name']}:")
    assert args["nproc-per-node"] == str(pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
    assert pod["terminationGracePeriodSeconds"] > int(args["shutdown-timeout"])
    mounted = {one["name"] for one in pod["containers"][0]["volumeMounts"]}
    assert mounted == {one["name"] for one in pod["volumes"]}


@pytest.mark.long
@pytest.mark.parametrize("version", ["1.29", "1.32", "1.36"])
def test_the_schemas_of_kubernetes_take_every_document(version: str) -> None:
    schemas = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    for document in documents():
        schemas.validate(document, version, strict=True)
        broken = {**document, "spec": {**document["spec"], "completion": 2}}
        with pytest.raises(schemas.ValidationError):
            schemas.validate(broken, version, strict=True)


def documents() -> list[dict]:
    return list(yaml.safe_load_all(KUBERNETES.read_text(encoding="utf-8")))


def test_the_commands_of_the_page_start_what_the_files_start() -> None:
    page = (CLUSTER.parent / "clusters.md").read_text(encoding="utf-8")
    commands = re.findall(r"^torchrun (?:.*\\\n)*.*", page, re.MULTILINE)
    assert commands
    for command in commands:
        words = shlex.split(command.replace("\\\n", " "))
        assert words[words.index("-m") + 1 : words.index("-m") + 3] == ["orrery", "train"]
        assert {"--nnodes", "--rdzv-endpoint", "--resume"} <= {*words}
