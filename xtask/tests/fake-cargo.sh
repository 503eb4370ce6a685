#!/bin/sh
# Stands in for `cargo` in the tests of xtask: notes how it is called in $FAKE_CARGO_CALLS and builds nothing.
#
# FAKE_CARGO_FAIL names a subcommand that ends with 101; `build` says that it made $FAKE_CARGO_FET.
set -eu
if [ "$1" = metadata ]; then
    echo "{\"workspace_root\":\"$PWD\",\"target_directory\":\"$PWD/target\"}"
    exit 0
fi
echo "$* | ${CARGO_PKG_NAME:-}${CARGO_MANIFEST_DIR:-} | ${LIBTORCH:-none} | ${LD_LIBRARY_PATH:-none} | ${RUSTDOCFLAGS:-none}" >>"$FAKE_CARGO_CALLS"
if [ "$1" = "${FAKE_CARGO_FAIL:-}" ]; then exit 101; fi
if [ "$1" = build ]; then
    echo "{\"reason\":\"compiler-artifact\",\"target\":{\"name\":\"fet\"},\"executable\":\"$FAKE_CARGO_FET\"}"
fi
