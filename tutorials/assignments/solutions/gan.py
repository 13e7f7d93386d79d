# %% exercise: discriminator_loss
def discriminator_loss(real, fake):
    """The discriminator's loss from scores [N]."""
    return np.mean(np.logaddexp(0, -real)) + np.mean(np.logaddexp(0, fake))


# %% exercise: generator_loss
def generator_loss(fake):
    """The generator's loss."""
    return np.mean(np.logaddexp(0, -fake))


# %% exercise: play
def play(real, noise, states):
    """One step of each net, in place; returns (discriminator's loss, generator's loss). states = ({}, {})."""

    def of_discriminator(tree):
        with discriminator.holding(tree):
            return discriminator_loss(judge(real), judge(fake))

    def of_generator(tree):
        with generator.holding(tree):
            return generator_loss(judge(make(noise)))

    fake = make(noise)
    d, gradients = value_and_grad(of_discriminator)(discriminator.tree())
    adam(discriminator, gradients, states[1])
    g, gradients = value_and_grad(of_generator)(generator.tree())
    adam(generator, gradients, states[0])
    return d, g
