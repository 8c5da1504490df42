#!/usr/bin/env bash
# Makes the rank tables of this folder. On cards add each host's addresses: --hccn HOST=FILE, a copy of its /etc/hccn.conf.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

npu-shim ranktable make --hosts 127.0.0.1:1 -o rank_table_1p.json
npu-shim ranktable make --hosts 127.0.0.1:2 -o rank_table_2p.json
npu-shim ranktable make --hosts 127.0.0.1:4 -o rank_table_4p.json
npu-shim ranktable make --hosts 127.0.0.1:8 -o rank_table_8p.json
npu-shim ranktable make --hosts 10.0.0.1:8,10.0.0.2:8 -o rank_table_2x8p.json
