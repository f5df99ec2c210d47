"""Tools of those who change the lab; no part of the product."""
