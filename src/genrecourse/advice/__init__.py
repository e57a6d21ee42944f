"""What every front end calls: one service around a fitted method."""
