#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Writes man pages and completions, as the program itself tells them, below PREFIX.
# usage: scripts/write_shell_files.sh PREFIX TACET...      (several words where the program needs an emulator)
set -euo pipefail
prefix=$1
shift
bash=$prefix/share/bash-completion/completions zsh=$prefix/share/zsh/site-functions fish=$prefix/share/fish/vendor_completions.d
man=$prefix/share/man/man1
mkdir -p "$bash" "$zsh" "$fish" "$man"
"$@" completion bash > "$bash/tacet"
"$@" completion zsh > "$zsh/_tacet"
"$@" completion fish > "$fish/tacet.fish"
"$@" help --man | gzip -9n > "$man/tacet.1.gz"
for command in $("$@" completion --list); do
  "$@" help --man "$command" | gzip -9n > "$man/tacet-$command.1.gz"
done
