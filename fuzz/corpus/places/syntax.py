@a.b(c, *d, **e)
class C(A, metaclass=B):
    x: int = (1, 2)[0:1, ::2]

async def f(a, /, b=(1), *c: int, d, e=lambda *x, y=1: (x, y), **g) -> (None):
    async with a as (b, c), (d):
        return [(yield) async for x in (y) if (z) if not w], {**a, 'b': (c)}, {1, *e}
    del (a), b[c], d.e,
    try: raise (A) from (B)
    except (A, B) as e: pass; (x)
    else: print((i for i in j), (i, *j), k=(1), *l)
    finally: assert (a), (b)
    while (a := 1) < 2 <= (3): a += (yield (b)); continue
    return (await g()) if (a and (b or c)) else -(-1) ** ~2
match (a), b:
    case [1, *_] | {'k': (v), **r} if (v): x = ("a" 'b'
        "c")
    case C(1, k=2) as z: pass
