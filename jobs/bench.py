"""``luckbase bench``"""
def bench() -> None:
    """x"""
