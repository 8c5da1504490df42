#!/usr/bin/env bash
exec bash "$(dirname "${BASH_SOURCE[0]}")/../train_8p.sh" digits_fit "$@"
