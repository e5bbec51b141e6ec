#!/bin/sh
# Compiles the harness with rustc alone. The library serde_json comes as source with Debian (`librust-serde-json-dev`).
# Usage: ./build.sh FOLDER    writes FOLDER/harness
set -eu
here=$(CDPATH='' cd -- "$(dirname "$0")" && pwd)
registry=${CRATES:-/usr/share/cargo/registry}
out=${1:?usage: build.sh FOLDER}
mkdir -p "$out"

# Compiles one crate of the registry: its name, then the options that name what it uses.
crate() {
    name=$1
    shift
    for source in "$registry/$name"-[0-9]*; do :; done
    [ -d "$source" ] || { echo "build.sh: no crate $name in $registry, expected the package librust-serde-json-dev" >&2; exit 1; }
    edition=$(sed -n 's/^edition = "\(.*\)"/\1/p' "$source/Cargo.toml")
    rustc --crate-name "$name" --crate-type rlib --edition "${edition:-2015}" -O --cap-lints allow \
        --cfg 'feature="std"' -L "$out" --out-dir "$out" "$@" "$source/src/lib.rs"
}

crate itoa
crate ryu
crate serde
crate serde_json --extern serde="$out/libserde.rlib" --extern itoa="$out/libitoa.rlib" --extern ryu="$out/libryu.rlib"
rustc --edition 2018 -O -L "$out" --extern serde_json="$out/libserde_json.rlib" -D warnings -A dead_code -o "$out/harness" "$here/harness.rs"
