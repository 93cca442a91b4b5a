#!/usr/bin/env bash
# wheel_test.sh BUILD: pip installs the wheel of this build into a fresh environment, and the programs run there.
set -euo pipefail
build=$1
skip() { echo "SKIP: $1"; exit 77; }
command -v zip >/dev/null || skip "zip is not installed"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv" >"$work/log" 2>&1 || skip "python3 cannot make a virtual environment (package python3-venv)"
fail() { echo "wheel_test: $1" >&2; exit 1; }

wheel=$(dirname "${BASH_SOURCE[0]}")/../../scripts/wheel.sh
"$wheel" --build "$build" --output "$work/dist" || fail "wheel.sh failed"
mkdir "$work/again"
"$wheel" --build "$build" --output "$work/again" 2>/dev/null
for file in "$work"/dist/*.whl; do
  cmp "$file" "$work/again/$(basename "$file")" || fail "the same build gave two different wheels"
done

(cd "$work/dist" && sha256sum --check --quiet --strict SHA256SUMS) || fail "SHA256SUMS does not fit the wheels"
[ "$(wc -l <"$work/dist/SHA256SUMS")" = "$(find "$work/dist" -name '*.whl' | wc -l)" ] || fail "SHA256SUMS does not list every wheel"

bin=$work/venv/bin
"$bin/pip" install -q --no-index --disable-pip-version-check "$work"/dist/*.whl || fail "pip refuses the wheels"
version=$(cat "$(dirname "$wheel")/../VERSION")
cd "$work"
for command in fleetrun "python -m fleetrun" fleetd; do
  said=$(PATH=$bin:$PATH bash -c "$command --version") || fail "$command --version failed"
  grep -qF "$version" <<<"$said" || fail "$command --version said '$said'"
done
"$bin/python" -m fleetrun --nproc_per_node=2 --log_dir=logs sh -c 'echo "rank $PADDLE_TRAINER_ID"' >/dev/null 2>&1 ||
  fail "the installed fleetrun started no ranks"
[ "$(cat logs/workerlog.* | sort | xargs)" = "rank 0 rank 1" ] || fail "not all ranks ran"
"$bin/python" - <<'END' || fail "the list of libraries in the wheel is wrong"
import importlib.metadata, json
files = [f for f in importlib.metadata.files("fleetrun") if f.match("sboms/*.spdx.json")]
sbom = json.loads(files[0].read_text())
names = {p["name"] for p in sbom["packages"]}
assert {"fleetrun", "libdnnl2", "nlohmann-json3-dev"} <= names, names
ids = {p["SPDXID"] for p in sbom["packages"]} | {"SPDXRef-DOCUMENT"}
assert all({r["spdxElementId"], r["relatedSpdxElement"]} <= ids for r in sbom["relationships"])
END
"$bin/fleet-worker" --help >/dev/null || fail "fleet-worker does not start"
"$bin/pip" uninstall -y -q --disable-pip-version-check fleetrun fleetrun-cuda 2>/dev/null
[ ! -e "$bin/fleetrun" ] || fail "pip left bin/fleetrun behind"
echo "wheel_test: installed, run and removed"
