#!/usr/bin/env bash
# Records docs/img/run.svg: bin/leat at a terminal of its own, typed into by tmux.
# Needs tmux, asciinema (Debian) and svg-term (npm install svg-term-cli; SVG_TERM=its path).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
session=leat-record-$$ work=$(mktemp -d)
trap 'tmux kill-session -t "$session" 2>/dev/null || true; rm -rf "$work"' EXIT

type_line() {
  local text=$1 i
  for ((i = 0; i < ${#text}; i++)); do
    tmux send-keys -t "$session" -l -- "${text:i:1}"
    sleep 0.04
  done
  sleep 0.4
  tmux send-keys -t "$session" Enter
}

wait_for() { # PATTERN SECONDS: until it shows, then as long as a reader needs
  local n
  for ((n = 0; n < 400; n++)); do
    if tmux capture-pane -p -t "$session" | grep -qE -- "$1"; then
      sleep "$2"
      return
    fi
    sleep 0.3
  done
  echo "record.sh: never saw $1" >&2
  exit 1
}

# apart: frames lie side by side; a font a little wider than svg-term thinks would show in the next.
apart() {
  perl -pi -e 's/(<svg (?:x|width)="|translateX\(-)(\d+)/$1 . $2 \/ 92 * 100/ge' "$1"
}

# still: where nothing moves (a viewer without CSS animation, a reader who wants none), the
# picture is the frame that stands longest near the end, not the empty first one.
still() {
  local shift
  shift=$(grep -oE '[0-9.]+%\{transform:translateX\(-[0-9]+px\)' "$1" |
    sed -E 's/%\{transform:translateX\((-[0-9]+px)\)/ \1/' |
    awk '$1 - at > most && at > 60 { most = $1 - at; found = frame } { at = $1; frame = $2 } END { print found }')
  sed -i -E "s/<style>/<style>@media (prefers-reduced-motion){*{animation:none!important}}/; s/(animation-duration:)/transform:translateX($shift);\1/" "$1"
}

shell="env -i HOME=$work PATH=$PWD/bin:/usr/bin:/bin TERM=xterm-256color LANG=C.UTF-8 PS1='\$ ' bash --norc --noprofile"
tmux new-session -d -s "$session" -x 92 -y 31 "asciinema rec -q -c \"$shell\" $work/run.cast"
sleep 2
type_line "leat run demo --vram 4MiB --stats --temp 0"
wait_for "Ctrl-D leaves" 1
type_line "Tell me a story about a dog and a ball."
wait_for "decode [0-9]+ tokens" 2
type_line "/show plan"
wait_for "a step at most" 5
type_line "/quit"
sleep 1
type_line "exit"
sleep 2
"${SVG_TERM:-svg-term}" --in "$work/run.cast" --out docs/img/run.svg --window --no-cursor --width 92 --height 31
apart docs/img/run.svg
still docs/img/run.svg
if [ -n "${1:-}" ]; then cp "$work/run.cast" "$1"; fi
