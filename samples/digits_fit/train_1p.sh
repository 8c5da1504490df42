#!/usr/bin/env bash
exec bash "$(dirname "${BASH_SOURCE[0]}")/../train_1p.sh" digits_fit "$@"
