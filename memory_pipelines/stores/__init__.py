"""Where conversations, memory and the state of runs are kept: ports in `base`, SQL behind them."""
