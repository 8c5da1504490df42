#!/usr/bin/env bash
# with_card.sh COMMAND...: run a command that sees the device file of a card, /dev/davinci0; with CARDS=N those of N
# cards, with ETC=FOLDER also the files of a folder below /etc.
#
# The files exist only in a mount namespace of the command. Exits with 125 where the machine allows no such namespace.
set -eu
namespace=(unshare --mount)
[ "$(id -u)" -eq 0 ] || namespace+=(--map-root-user)
"${namespace[@]}" true 2> /dev/null || exit 125
folder="$(mktemp -d)"
trap 'rmdir "$folder"' EXIT
"${namespace[@]}" bash -euc '
  folder=$1
  shift
  mount -t tmpfs card "$folder"
  for file in null zero full random urandom; do
    touch "$folder/$file"
    mount --bind "/dev/$file" "$folder/$file"
  done
  mkdir "$folder/shm"
  mount --bind /dev/shm "$folder/shm"
  ln -s /proc/self/fd "$folder/fd"
  for number in 0 1 2; do ln -s "fd/$number" "$folder/std$(echo in out err | cut -d " " -f $((number + 1)))"; done
  for ((number = 0; number < ${CARDS:-1}; number++)); do touch "$folder/davinci$number"; done
  [ -z "${ETC:-}" ] || mount -t overlay etc -o "lowerdir=$ETC:/etc" /etc || exit 125
  mount --rbind "$folder" /dev
  exec "$@"
' with_card "$folder" "$@"
