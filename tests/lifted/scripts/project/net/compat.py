"""Imports TensorFlow for all others."""
import tensorflow as tf
