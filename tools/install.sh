#!/bin/sh
# Installs the system packages that the tests use and this machine lacks.
# It says what it installs; where it cannot, the tests that need it say so.
set -eu

want=""
need() { # need COMMAND PACKAGE
	command -v "$1" >/dev/null 2>&1 || want="$want $2"
}
need git git
need cc gcc
need bwrap bubblewrap
need curl curl

apt() { # apt PACKAGE...: installs them
	sudo=""
	[ "$(id -u)" = 0 ] || sudo="sudo -n"
	echo "install: $*"
	$sudo apt-get update -qq &&
		$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

if [ -n "$want" ]; then
	if ! command -v apt-get >/dev/null 2>&1; then
		echo "install:$want missing, and this is no Debian: install them by hand" >&2
		exit 1
	fi
	# shellcheck disable=SC2086
	apt $want
fi

# The peers of the interoperability tests; without npm those tests are skipped.
peers() {
	dir="$(dirname "$0")/../internal/acp/peers/testdata/ts"
	[ ! -d "$dir/node_modules/@agentclientprotocol/sdk" ] || return 0
	if ! command -v npm >/dev/null 2>&1 && command -v apt-get >/dev/null 2>&1; then
		apt nodejs npm || true
	fi
	if ! command -v npm >/dev/null 2>&1; then
		echo "install: no npm: the tests with the official ACP SDK are skipped" >&2
		return 0
	fi
	echo "install: the official ACP SDK"
	(cd "$dir" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error) ||
		echo "install: npm ci failed: the tests with the official ACP SDK are skipped" >&2
}
peers
