"""Land cover from satellite tiles that lie in an object store."""
