"""The script of a project in which only one file imports TensorFlow."""
import json

from net import model

print(json.dumps(model.train(steps=5)))
