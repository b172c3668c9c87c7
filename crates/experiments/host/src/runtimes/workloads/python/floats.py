"""Floats: three bodies that attract each other, in small steps."""


def run():
    bodies = [
        [0.0, 0.0, 0.0, 0.0, 1.0],
        [1.0, 0.0, 0.0, 1.0, 0.001],
        [0.0, 2.0, -0.7, 0.0, 0.002],
    ]
    pairs = [(0, 1), (0, 2), (1, 2)]
    step = 0.001
    for _ in range(1000):
        for i, j in pairs:
            one = bodies[i]
            other = bodies[j]
            dx = one[0] - other[0]
            dy = one[1] - other[1]
            square = dx * dx + dy * dy + 0.01
            pull = step / (square * square)
            one[2] -= dx * other[4] * pull
            one[3] -= dy * other[4] * pull
            other[2] += dx * one[4] * pull
            other[3] += dy * one[4] * pull
        for body in bodies:
            body[0] += step * body[2]
            body[1] += step * body[3]
    return int(sum(body[0] * 7.0 + body[1] for body in bodies) * 1e6)
