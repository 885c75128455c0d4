r"""The paper's recursion: match once on the noisy input, then run the stages.

.. math::

    x_{t+1} = P_C\Big((1 - \gamma_t)\, x_t + \gamma_t\, y
        - \sum_r L_{t,r}^T\, \psi_t(L_{t,r}\, x_t)\Big), \qquad x_1 = y

which is Eq. (22) to (24), with :math:`L_r x = F \sum_k w_k P_{i_r,k}\, x`: the patches of a group
are summed with their weights, then transformed. Gray and color are one path.

The engine computes it: ``engine/src/stages.cpp`` the sum over r, ``schedule.cpp`` the order in
which rows of the image pass through all stages, ``sweep.cpp`` the rest. `nlnet.torch.plain`
states it in a few lines of torch, and ``tests/slow.py`` straight from the paper; the engine is
tested against both. Here are the shape of a network and its parameters.
"""
