"""`POST /infer`: what a request to it asks for, and what it is answered."""
