from tensorflow.keras.estimator import model_to_estimator

def make(model, config):
    return model_to_estimator(model, None, None, '/tmp/model', (config)
)