"""DNN accelerators: design spaces, networks, a cost model and its environment."""
