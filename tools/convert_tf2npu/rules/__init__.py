"""The rules, one file each, in folders by topic, with their interface and registry.

Imports: ``rewrite`` and below; a rule never imports another rule.
Gives: changes and findings for one file.
"""
