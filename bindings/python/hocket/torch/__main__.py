"""`python -m hocket.torch` compiles what torch needs of Hocket, if it has not been compiled yet."""

from hocket.torch.build import built

print(built())
