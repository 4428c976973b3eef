"""The files that models are in: GGUF and folders of SafeTensors, opened and described."""
