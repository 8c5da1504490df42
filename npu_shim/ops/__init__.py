"""The NPU's ops, one per file: what each computes, on the card and on the CPU."""
