"""The rules, one file each; see ``registry``."""
