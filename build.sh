#!/usr/bin/env bash
# The one door to this project: ./build.sh help
# Every plain command is printed, after a +, before it runs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# What a machine without Go gets. go.mod says which version is the oldest that will do.
GO_VERSION=1.26.8

RUN_PACKAGES=(libvulkan1 mesa-vulkan-drivers)
DEV_PACKAGES=(ca-certificates git gcc libc6-dev libvulkan1 mesa-vulkan-drivers vulkan-validationlayers
  libvulkan-dev glslc spirv-tools shellcheck)
RELEASE_TARGETS=(linux/amd64 linux/arm64 windows/amd64 windows/arm64 darwin/amd64 darwin/arm64)
SBOM_TOOL=github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0
help() {
  cat <<'TEXT'
usage: ./build.sh VERB

  build    make bin/leat
  demo     decompose the demo model and tell a story with it, in less VRAM than it needs
  check    after every edit: lint, the tests that need no device, a sample of those that do
  test     everything CI runs
  nightly  the rest: each device test whole, then parts of them under the validation layers, the race detector and all sets
           of features; other drivers, long fuzzing, generated files made again, all cross-builds; run it before you close an issue
  lint     gofmt, go vet, staticcheck, shellcheck
  conform  hold every shader against its Go reference on this machine's device
  matrices the kernels with cooperative matrices on a newer software device than Debian 12's
  swiftshader kernels, goldens and a streamed run on SwiftShader, another driver than Mesa's, with less than any GPU has
  bench    the Go benchmarks, and each kernel against this machine's ceiling
  fuzz     each fuzz target, 30 s (FUZZTIME=5000x: that many inputs)
  shaders  rebuild the committed SPIR-V of the shaders that changed (Debian 12's glslc, and 13's)
  binding  rebuild the Vulkan binding from vk.xml
  release  in dist/: an archive and a bill of materials for each of six targets, checksums
  setup    install what all these need (Debian, Ubuntu)

demo, check, test and nightly call setup for what is missing.
Exit status: 0 it worked, 2 no such verb, anything else: the command printed last failed.
TEXT
}

say() { printf '== %s\n' "$*"; }

run() {
  local word
  printf '+'
  for word in "$@"; do
    if [[ $word =~ ^[A-Za-z0-9_./:=@%+,-]+$ ]]; then printf ' %s' "$word"; else printf ' %s' "${word@Q}"; fi
  done
  printf '\n'
  "$@"
}

fail() {
  printf 'build.sh: error: %s\n' "$1" >&2
  shift
  for hint in "$@"; do printf 'build.sh: hint: %s\n' "$hint" >&2; done
  exit 1
}

# ---- what the machine must have ----

as_root() {
  if [ "$(id -u)" = 0 ]; then run "$@"; else run sudo "$@"; fi
}

missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q '^install ok installed' || echo "$package"
  done
}

apt_updated=

# install PACKAGE…: those not there yet. Elsewhere than on Debian the user knows better.
install() {
  if ! command -v apt-get >/dev/null; then
    say "no apt-get here: not installing $*"
    return
  fi
  local missing
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  [ -n "$apt_updated" ] || as_root apt-get update -q
  apt_updated=1
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
}

go_minor() { # the Y of the given go command's 1.Y, or nothing
  GOTOOLCHAIN=local "$1" version 2>/dev/null | sed -n 's/^go version go1\.\([0-9]*\).*/\1/p'
}

# need_go puts a Go command into PATH that builds this project. A Go of 1.21 or later fetches
# the version it needs by itself (GOTOOLCHAIN). An older one, as Debian 12's, can't, but it can
# download modules, and Go's toolchains are published as one.
need_go() {
  local ours=${XDG_CACHE_HOME:-$HOME/.cache}/leat/go$GO_VERSION want minor
  want=$(sed -n 's/^go 1\.\([0-9]*\).*/\1/p' go.mod)
  if [ -x "$ours/bin/go" ]; then PATH=$PATH:$ours/bin; fi
  minor=$(go_minor go || true)
  if [ -z "$minor" ] && [ -x /usr/local/go/bin/go ]; then
    PATH=/usr/local/go/bin:$PATH
    minor=$(go_minor go || true)
  fi
  if [ -z "$minor" ]; then
    install ca-certificates golang-go
    minor=$(go_minor go || true)
    [ -n "$minor" ] || fail "no go command" "install Go 1.$want or later and put it into PATH"
  fi
  if [ "$minor" -ge "$want" ]; then
    return
  elif [ "$minor" -ge 21 ]; then
    export GOTOOLCHAIN=go$GO_VERSION
  else
    [ -x "$ours/bin/go" ] || fetch_toolchain "$ours"
    PATH=$ours/bin:$PATH
  fi
}

fetch_toolchain() { # into the folder $1, by an old go command
  local os arch dir tmp=$1.partial
  os=$(go env GOOS) arch=$(go env GOARCH)
  say "the go command here is too old: fetching Go $GO_VERSION"
  dir=$(cd / && run go mod download -json "golang.org/toolchain@v0.0.1-go$GO_VERSION.$os-$arch" |
    tee /dev/stderr | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
  [ -d "$dir" ] || fail "download of Go $GO_VERSION failed" "install Go $GO_VERSION or later and put it into PATH"
  rm -rf "$tmp"
  mkdir -p "$(dirname "$tmp")"
  cp -r "$dir" "$tmp"
  chmod -R u+w "$tmp"
  # A module keeps neither x bits nor inner go.mod files; the go command mends both in the same way.
  chmod +x "$tmp"/bin/* "$tmp"/pkg/tool/*/*
  find "$tmp/src" -name _go.mod -execdir mv {} go.mod \;
  mv "$tmp" "$1"
}

has_loader() { ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1' || /sbin/ldconfig -p 2>/dev/null | grep -q 'libvulkan\.so\.1'; }

has_driver() { [ -n "$(find /usr/share/vulkan/icd.d /etc/vulkan/icd.d -name '*.json' -print -quit 2>/dev/null)" ]; }

need_vulkan() { # to run: a loader and a driver, the CPU's if there is no other
  if [ "$(uname -s)" = Linux ] && ! { has_loader && has_driver; }; then
    install "${RUN_PACKAGES[@]}"
  fi
}

# newer_glslc prints the path of Debian 13's glslc, which knows cooperative matrices as Debian 12's does not: with the
# libraries it needs, in a folder of its own. Elsewhere than on Debian it prints nothing.
newer_glslc() {
  local ours=${XDG_CACHE_HOME:-$HOME/.cache}/leat/glslc-2025.2
  if [ ! -x "$ours/glslc" ] && [ -f /usr/share/keyrings/debian-archive-keyring.gpg ] && command -v apt-get >/dev/null; then
    fetch_glslc "$ours" >&2
  fi
  if [ -x "$ours/glslc" ]; then echo "$ours/glslc"; fi
}

# unpack_debian13 FOLDER PACKAGE…: the packages of Debian 13 and its backports, and all that they need, in FOLDER/root.
# apt checks Debian's signatures; nothing of this machine's changes.
unpack_debian13() {
  local tmp package folder=$1 apt
  shift
  tmp=$(mktemp -d)
  mkdir -p "$tmp"/{state/lists/partial,cache/archives/partial,new}
  for package in trixie trixie-backports; do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $package main"
  done >"$tmp/sources.list"
  apt=(apt-get -q -o "Dir::Etc::sourcelist=$tmp/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State=$tmp/state" -o "Dir::Cache=$tmp/cache" -o Dir::State::status=/dev/null -o APT::Sandbox::User=)
  run "${apt[@]}" update
  run "${apt[@]}" install -y --download-only --no-install-recommends "$@"
  for package in "$tmp"/cache/archives/*.deb; do
    dpkg -x "$package" "$tmp/new/root"
  done
  mkdir -p "$(dirname "$folder")"
  rm -rf "$folder"
  mv "$tmp/new" "$folder"
  rm -rf "$tmp"
}

fetch_glslc() { # into the folder $1
  unpack_debian13 "$1" glslc
  # Its C library is not this machine's, so its own loader starts it.
  cat >"$1/glslc" <<'SCRIPT'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/root/usr
exec "$root"/lib64/ld-linux-x86-64.so.2 --library-path "$root/lib/x86_64-linux-gnu" "$root/bin/glslc" "$@"
SCRIPT
  chmod +x "$1/glslc"
}

# newer_mesa prints the path of a command that runs a program on the software device of Debian 13's backports, which has
# cooperative matrices as Debian 12's has not. Elsewhere than on Debian on x86-64 it prints nothing.
newer_mesa() {
  local ours=${XDG_CACHE_HOME:-$HOME/.cache}/leat/mesa-backports13
  if [ ! -x "$ours/run" ] && [ -f /usr/share/keyrings/debian-archive-keyring.gpg ] && command -v apt-get >/dev/null &&
    [ "$(dpkg --print-architecture)" = amd64 ]; then
    fetch_mesa "$ours" >&2
  fi
  if [ -x "$ours/run" ]; then echo "$ours/run"; fi
}

fetch_mesa() { # into the folder $1
  unpack_debian13 "$1" mesa-vulkan-drivers/trixie-backports vulkan-validationlayers
  cat >"$1/run" <<'SCRIPT'
#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/root/usr
export VK_DRIVER_FILES="$root/share/vulkan/icd.d/lvp_icd.json" VK_LAYER_PATH="$root/share/vulkan/explicit_layer.d" VK_IMPLICIT_LAYER_PATH="$root/none"
exec "$root"/lib64/ld-linux-x86-64.so.2 --library-path "$root/lib/x86_64-linux-gnu" "$@"
SCRIPT
  chmod +x "$1/run"
}

# swiftshader_icd prints the path of the manifest of SwiftShader, the CPU's Vulkan device that Chromium carries: two files of
# its Debian package. Elsewhere than on Debian on x86-64 it prints nothing.
swiftshader_icd() {
  local ours=${XDG_CACHE_HOME:-$HOME/.cache}/leat/swiftshader icd=vk_swiftshader_icd.json
  if [ ! -f "$ours/$icd" ] && [ -f /usr/share/keyrings/debian-archive-keyring.gpg ] && command -v apt-get >/dev/null &&
    [ "$(dpkg --print-architecture)" = amd64 ]; then
    fetch_swiftshader "$ours" >&2
  fi
  if [ -f "$ours/$icd" ]; then echo "$ours/$icd"; fi
}

fetch_swiftshader() { # into the folder $1
  local tmp
  tmp=$(mktemp -d)
  mkdir "$tmp/new"
  # A machine whose lists are old, or that has none, fetches them first.
  (cd "$tmp" && run apt-get -q -o APT::Sandbox::User= download chromium-common) ||
    { as_root apt-get update -q && (cd "$tmp" && run apt-get -q -o APT::Sandbox::User= download chromium-common); }
  dpkg -x "$tmp"/chromium-common_*.deb "$tmp/root"
  cp "$tmp"/root/usr/lib/chromium/{libvk_swiftshader.so,vk_swiftshader_icd.json} "$tmp/new"
  mkdir -p "$(dirname "$1")"
  rm -rf "$1"
  mv "$tmp/new" "$1"
  rm -rf "$tmp"
}

setup() {
  need_go
  install "${DEV_PACKAGES[@]}"
}

# ---- verbs ----

version_flags() {
  local version commit
  version=$(git describe --tags --match 'v*' --dirty 2>/dev/null || echo devel)
  commit=$(git rev-parse --short=12 HEAD 2>/dev/null || true)
  echo "-s -w -X main.version=${version#v} -X main.commit=$commit"
}

build() {
  need_go
  run env CGO_ENABLED=0 go build -trimpath -ldflags "$(version_flags)" -o "bin/leat$(go env GOEXE)" ./cmd/leat
}

demo() {
  need_vulkan
  build
  demo_dir=$(mktemp -d) # not local: the trap outlives this function
  trap 'rm -rf "$demo_dir"' EXIT
  local model=cmd/leat/demo/leat-demo-q4_k_m.gguf
  run bin/leat decompose "$model" "$demo_dir/pack" --verify
  run bin/leat run "$demo_dir/pack" -p "Tell me a story about a dog and a ball." -n 120 --temp 0 --vram 4MiB --stats
}

lint() {
  need_go
  say "gofmt"
  local unformatted
  unformatted=$(gofmt -l .)
  [ -z "$unformatted" ] || fail "not gofmt-ed: ${unformatted//$'\n'/ }" "gofmt -w ."
  run go vet ./... ./tools/testdata
  run go vet -tags docs ./cmd/leat
  run go -C examples vet ./...
  run go tool staticcheck ./... ./tools/testdata
  run shellcheck build.sh .ci/run docs/img/record.sh
}

# split_packages lists in device the packages whose tests link the Vulkan layer, and in plain the others.
split_packages() {
  mapfile -t device < <(go list -test -f '{{.ImportPath}} {{join .Deps " "}} ' ./... | sed -n 's/^\([^ ]*\)\.test .* leat\/vk .*/\1/p')
  [ ${#device[@]} -gt 0 ] || fail "no package's tests link leat/vk: split_packages is wrong"
  mapfile -t plain < <(go list ./... ./tools/testdata | grep -vxF -f <(printf '%s\n' "${device[@]}"))
}

cross() { # TARGET…
  local target
  for target in "$@"; do
    run env CGO_ENABLED=0 GOOS="${target%/*}" GOARCH="${target#*/}" go build ./...
  done
}

# fresh: what is committed was made from these sources, by the sums beside it.
fresh() {
  run go run ./tools/genvk -check
  run go run ./tools/genspv -check
}

# rebuilt: the generators make what is committed, byte by byte.
rebuilt() {
  run go run ./tools/genvk -check -all
  local newer
  newer=$(newer_glslc)
  [ -n "$newer" ] || say "no Debian 13 to fetch glslc from: the kernels with cooperative matrices are not rebuilt"
  run go run ./tools/genspv -check -all -glslc-newer "$newer"
}

# Device tests must run, not skip, wherever this verb is called.
run_tests() {
  run env LEAT_REQUIRE_DEVICE=1 LEAT_REQUIRE_TOOLS=1 "$@"
}

# suite NAME [VARIABLE=VALUE…] [FLAG…]: the tests that tools/suites lists under that name.
suite() {
  local name=$1 lines line args
  shift
  lines=$(go run ./tools/suites "$name")
  while IFS= read -r line; do
    read -ra args <<<"$line"
    run_tests "$@" "${args[@]}"
  done <<<"$lines"
}

# stage NAME COMMAND…: its seconds, and how many processors it kept busy, say what to shorten.
stage() {
  local name=$1 start=$SECONDS TIMEFORMAT="== $1: %0lR, %P %% of one processor"
  shift
  say "$name"
  time "$@"
  echo "$name $((SECONDS - start))" >>"$stage_seconds"
}

# together FUNCTION FUNCTION: two rows of stages at once, as each leaves processors idle at times. What the second one prints comes behind the
# first one's, and behind both what failed.
together() {
  local status=0 outputs first second
  outputs=$(mktemp -d)
  say "beside it, printed when it has ended: $2"
  ("$1") >"$outputs/1" 2>&1 &
  first=$!
  ("$2") >"$outputs/2" 2>&1 &
  second=$!
  tail -n +1 -f --pid="$first" "$outputs/1"
  wait "$first" || status=$?
  wait "$second" || status=$?
  cat "$outputs/2"
  if [ "$status" != 0 ]; then
    failed "$outputs/1" "$outputs/2"
    fail "a stage failed" "above stands what failed; the output of $1 is in $outputs/1, that of $2 in $outputs/2"
  fi
  rm -r "$outputs"
}

# failed FILE…: what failed in the output of tests, as some logs keep only the end. Of a test that hung these are the goroutines that wait, but not
# idle readers of a disk, of which a dump is full.
failed() {
  say "what failed"
  awk '
    function flush() { if (dump ~ /leat\// && dump !~ /file\.\(\*Pool\)\.read/) print dump; dump = "" }
    /^goroutine [0-9]+ / { flush(); dump = $0; depth = 1; next }
    dump != "" && /^$/ { flush(); next }
    dump != "" { if (depth++ < 16) dump = dump "\n" $0; next }
    /^ *--- FAIL|^FAIL|^panic: |^\t\tTest|_test\.go:[0-9]+: |^[^ ]*: error: / { print }
    END { flush() }' "$@" | head -n 200
}

# passed VERB: the last two lines, which a note can quote.
passed() {
  say "seconds: $(paste -s -d, "$stage_seconds" | sed 's/,/, /g')"
  rm "$stage_seconds"
  say "$1: all of it passed in $SECONDS s, at $(git rev-parse --short=12 HEAD 2>/dev/null || echo 'no commit')"
}

# Where a stage belongs: in check what an edit breaks soonest; in test what finds most for its seconds, each device test once; in
# nightly everything, also what test has a sample of.

# A few goldens: a dense model in blocks, experts, and biases with shared heads.
GOLDENS='^TestGoldens$/^(leat-demo-q4_k_m|leat-demo-moe-q8_0|qwen2-tiny-q8_0)$'
# One kernel of each kind: a product of few rows, one of many, attention, a norm, routing, the cache.
SAMPLE='/^(mul_mat_vec_longs_q4_k|mul_mat_q8_0|flash_attn_f16|rms_norm|topk_moe|kv_append_q8_0)$'

# A golden of each architecture and of each kind of weights: another driver takes a minute for each.
DRIVER_GOLDENS='^TestGoldens(Few)?$/^(leat-demo-.*|.*-nano|llama3-tiny-q4_k_m)$'

check() {
  setup
  stage_seconds=$(mktemp)
  local device plain
  split_packages
  stage "lint" lint
  stage "generated files" fresh
  stage "tests without a device" run env LEAT_BROKEN_PARTS=10 go test "${plain[@]}"
  stage "commands and figures of the pages" go -C examples test -run '^TestFigures|^TestCommands$/^(flags|list)$' .
  stage "a sample of the kernels" run_tests go test -count=1 -run "^TestQuick\$$SAMPLE" ./shaders/conform
  stage "three goldens" run_tests go test -count=1 -run "$GOLDENS" ./engine
  passed check
}

# Not in test: TestQuick is under the layers; TestSyntheticRouting judges what tools/synth writes; the others take minutes to compute what shorter
# ones have samples of.
NIGHTLY_ALONE='^(TestQuick|TestReplaySlots|TestRehearse|TestRehearseAhead|TestRehearseKernels|TestRehearseLayers|TestRehearseReplayed|TestExpertsLong|TestSyntheticRouting|TestNormedRoute|TestTurned|TestBytesOfText|TestAttnRuns|TestTurnedAlike|TestTunedBits)$'

test_all() {
  setup
  stage_seconds=$(mktemp)
  local device plain
  split_packages
  together device_stages other_stages
  passed test
}

device_stages() {
  stage "device tests" run_tests LEAT_CONFORM_PARTS=60 LEAT_ENGINE_PARTS=18 go test -count=1 -timeout 30m -skip "$NIGHTLY_ALONE" "${device[@]}"
  stage "validation layers" suite layers LEAT_VALIDATE=1 LEAT_CONFORM_PARTS=60 LEAT_ENGINE_PARTS=18 go test -count=1 -timeout 30m
}

other_stages() {
  stage "lint" lint
  stage "generated files" fresh
  stage "tests without a device" run_tests LEAT_BROKEN_PARTS=10 go test -count=1 -timeout 30m "${plain[@]}"
  stage "examples" run_tests go -C examples test -count=1 ./...
  stage "race detector" suite race CGO_ENABLED=1 go test -race -short -count=1 -timeout 30m
  stage "SwiftShader" swiftshader some
  stage "another system" cross windows/amd64
}

# Each device test is seen whole once. Under the layers and with sets of features, of the cases that compute for long some take their turn;
# the race detector leaves out, by -short, tests in which one goroutine does all.
nightly() {
  setup
  stage_seconds=$(mktemp)
  local device plain
  split_packages
  together whole_stages rare_stages
  passed nightly
}

whole_stages() {
  stage "all broken files" run_tests go test -count=1 -timeout 30m ./tools/golden/broken
  stage "all device tests, whole" run_tests go test -count=1 -timeout 180m "${device[@]}"
  stage "all sets of features" run_tests LEAT_CONFORM_PARTS=10 LEAT_ENGINE_PARTS=8 go test -count=1 -timeout 180m \
    -run '^(TestConform|TestQuickDisabled|TestDisable)$' ./shaders/conform ./engine -combinations
}

rare_stages() {
  stage "generated files, made again" rebuilt
  stage "cross-builds" cross "${RELEASE_TARGETS[@]}"
  stage "newer Mesa" matrices
  stage "SwiftShader" swiftshader
  stage "all under the validation layers" run_tests LEAT_VALIDATE=1 LEAT_CONFORM_PARTS=20 LEAT_ENGINE_PARTS=4 go test -count=1 -timeout 120m "${device[@]}"
  stage "all under the race detector" run_tests CGO_ENABLED=1 LEAT_BROKEN_PARTS=40 LEAT_CONFORM_PARTS=20 LEAT_ENGINE_PARTS=4 go test -race -short -count=1 -timeout 180m \
    "${plain[@]}" "${device[@]}"
  stage "fuzz" fuzz
}

# matrices tests what Debian 12's software device can't run, on a newer one, which takes seconds to compile a kernel.
matrices() {
  need_go
  local newer
  newer=$(newer_mesa)
  if [ -z "$newer" ]; then
    say "no Debian 13 to fetch Mesa from: the kernels with cooperative matrices are not run"
    return
  fi
  run_tests LEAT_ENABLE=coopmat LEAT_VALIDATE=1 LEAT_ENGINE_PARTS=4 go test -exec "$newer" -count=1 -timeout 120m \
    -run '^(TestQuickEnabled|TestGoldens|TestGoldensHalves|TestGenerateGreedy|TestExpertKernels|TestRoles)$' ./shaders/conform ./engine -combinations
}

# swiftshader tests a second driver, which has subgroups of 4, no storage of 8 or 16 bits and no integers of 64: all quick cases,
# goldens and a streamed run, or with "some" one of each kind.
swiftshader() {
  need_go
  local icd kernels goldens=$DRIVER_GOLDENS parts=4
  icd=$(swiftshader_icd)
  if [ -z "$icd" ]; then
    say "no Debian to fetch SwiftShader from: nothing is run on it"
    return
  fi
  if [ "${1:-all}" = some ]; then
    kernels=$SAMPLE goldens='^TestGoldens(Few)?$/^qwen2moe-nano$' parts=1
  fi
  run_tests VK_DRIVER_FILES="$icd" go test -count=1 -timeout 60m -run "^TestQuick\$${kernels:-}" ./shaders/conform
  run_tests VK_DRIVER_FILES="$icd" LEAT_ENGINE_PARTS="$parts" go test -count=1 -timeout 60m -run "$goldens" ./engine
  streamed VK_DRIVER_FILES="$icd"
}

# streamed VARIABLE=VALUE…: logits have the same bits streamed and not.
streamed() {
  build
  local dir
  local -a eval=(bin/leat eval demo --tokens "1,333,470,281,259,260,300,301,302,303")
  dir=$(mktemp -d)
  run env "$@" "${eval[@]}" --logits "$dir/whole"
  run env "$@" "${eval[@]}" --logits "$dir/streamed" --vram 4MiB
  run cmp "$dir/whole" "$dir/streamed"
  rm -r "$dir"
}

conform() {
  need_go
  need_vulkan
  run env LEAT_REQUIRE_DEVICE=1 go test -count=1 -v ./internal/selftest ./shaders/conform
}

bench() {
  need_go
  need_vulkan
  run go test -run '^$' -bench . -benchmem ./...
  run go run ./tools/kernelbench
}

fuzz() {
  need_go
  local file line
  while IFS= read -r line; do
    file=${line%%:*}
    [[ $line =~ func\ (Fuzz[A-Za-z0-9_]*) ]]
    run go test -run '^$' -fuzz "^${BASH_REMATCH[1]}\$" -fuzztime "${FUZZTIME:-30s}" -fuzzminimizetime 100x "./$(dirname "$file")"
  done < <(git grep -E '^func Fuzz[A-Za-z0-9_]*\(f \*testing' -- '*_test.go')
}

# release makes the same bytes of the same commit: all times are the commit's, names are
# sorted, and no path of this machine gets in.
release() {
  need_go
  install zip
  local flags version target
  flags=$(version_flags)
  version=${flags#*main.version=} version=${version%% *}
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
  export SOURCE_DATE_EPOCH CGO_ENABLED=0 GOFLAGS=-buildvcs=false TZ=UTC
  rm -rf dist
  mkdir -p dist/tools dist/common
  run env GOBIN="$PWD/dist/tools" go install -trimpath "$SBOM_TOOL"
  run go run -ldflags "$flags" -tags docs ./cmd/leat docs dist/common
  run go run ./tools/notices -o dist/common/THIRD_PARTY_LICENSES.txt "${RELEASE_TARGETS[@]}"
  cp -r LICENSE README.md CHANGELOG.md docs dist/common
  for target in "${RELEASE_TARGETS[@]}"; do
    archive "leat-$version-${target%/*}-${target#*/}" "${target%/*}" "${target#*/}" "$flags"
  done
  rm -rf dist/tools dist/common
  cd dist
  sha256sum -- * >SHA256SUMS
  run sha256sum --check SHA256SUMS
}

archive() { # NAME GOOS GOARCH LDFLAGS
  local name=$1 os=$2 arch=$3 flags=$4
  cp -r dist/common "dist/$name"
  run env GOOS="$os" GOARCH="$arch" go build -trimpath -ldflags "$flags" -o "dist/$name/" ./cmd/leat
  run env GOOS="$os" GOARCH="$arch" dist/tools/cyclonedx-gomod app -json -std -licenses -noserial -notimestamp \
    -main cmd/leat -output "dist/$name.cdx.json" .
  chmod -R u=rwX,go=rX "dist/$name"
  find "dist/$name" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
  if [ "$os" = windows ]; then
    (cd dist && find "$name" -type f | LC_ALL=C sort | run zip -q -X -9 "$name.zip" -@)
  else
    run tar -C dist --sort=name --owner=0 --group=0 --numeric-owner --format=ustar \
      --use-compress-program='gzip -n -9' -cf "dist/$name.tar.gz" "$name"
  fi
  rm -r "dist/$name"
}

case ${1:-help} in
  build | demo | check | nightly | lint | conform | matrices | bench | fuzz | release | setup | help) "${1:-help}" ;;
  swiftshader) swiftshader "${2:-all}" ;;
  test) test_all ;;
  shaders)
    need_go
    newer=$(newer_glslc)
    run go run ./tools/genspv -glslc-newer "$newer"
    ;;
  binding)
    need_go
    run go run ./tools/genvk
    ;;
  -h | --help) help ;;
  *)
    help >&2
    exit 2
    ;;
esac
