"""The paper's recursion, what its stages learn, and two small convolutional networks beside it."""
