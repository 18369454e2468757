"""Train a GAN with weight clipping on points of a ring."""
import argparse

import torch
import torch.nn as nn

from synthetic import ring

parser = argparse.ArgumentParser()
parser.add_argument('--steps', type=int, default=60)
parser.add_argument('--batch-size', type=int, default=64)
parser.add_argument('--clip', type=float, default=0.05)
parser.add_argument('--seed', type=int, default=1)
opt = parser.parse_args()

nz = 4


# custom weights initialization called on netG and netD
def weights_init(m):
    classname = m.__class__.__name__
    if classname.find('Linear') != -1:
        m.weight.data.normal_(0.0, 0.2)
        m.bias.data.fill_(0)
    elif classname.find('BatchNorm') != -1:
        nn.init.normal_(m.weight.data, 1.0, 0.02)


class Generator(nn.Module):
    def __init__(self):
        super(Generator, self).__init__()
        self.main = nn.Sequential(nn.Linear(nz, 16), nn.BatchNorm1d(16), nn.ReLU(True), nn.Linear(16, 2))

    def forward(self, z):
        return self.main(z)


class Critic(nn.Module):
    def __init__(self):
        super(Critic, self).__init__()
        self.main = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))

    def forward(self, x):
        return self.main(x).mean(0).view(1)


def sample(netG, n):
    """Points of the generator, with fixed batch statistics."""
    netG.eval()
    with torch.no_grad():
        points = netG(torch.randn(n, nz))
    return points


def main():
    torch.manual_seed(opt.seed)
    netG, netD = Generator(), Critic()
    netG.apply(weights_init)
    netD.apply(weights_init)
    optimizerD = torch.optim.RMSprop(netD.parameters(), lr=5e-3)
    optimizerG = torch.optim.RMSprop(netG.parameters(), lr=5e-3)
    modes = []
    for step in range(opt.steps):
        modes.append(netG.training)
        # train the critic
        optimizerD.zero_grad()
        real = ring(opt.batch_size)
        fake = netG(torch.randn(opt.batch_size, nz))
        errD = netD(fake.detach()) - netD(real)
        errD.backward()
        optimizerD.step()
        for p in netD.parameters():
            p.data.clamp_(-opt.clip, opt.clip)

        # train the generator
        errG = -netD(netG(torch.randn(opt.batch_size, nz)))
        errG.backward()
        optimizerG.zero_grad()
        optimizerG.step()

        if step % 20 == 0:
            radius = sample(netG, 100).norm(dim=1).mean()
            print('[%d/%d] radius: %.3f' % (step, opt.steps, radius.item()))
    moved = sum(p.data.abs().sum().item() for p in netG.parameters())
    print('Generator weights {:.4f}'.format(moved))
    print('Steps in train mode', sum(modes))


if __name__ == '__main__':
    main()
