"""Train a small CNN on generated images, save it, and load it again."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

from synthetic import image_loaders

parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=2)
parser.add_argument('--lr', type=float, default=0.05)
parser.add_argument('--seed', type=int, default=1)
args = parser.parse_args()

NUM_CLASSES = 3
CHECKPOINT = 'cnn.pt'


class Net(nn.Module):
    def __init__(self, num_classes):
        super(Net, self).__init__()
        self.conv = nn.Conv2d(1, 8, 3, padding=1)
        self.bn = nn.BatchNorm2d(8)
        self.drop = nn.Dropout(0.25)
        self.fc = nn.Linear(8 * 4 * 4, num_classes)
        # He initialisation
        nn.init.kaiming_normal_(self.conv.weight.data)
        self.fc.weight.data.normal_(0, 0.01)
        self.fc.bias.data.zero_()

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn(self.conv(x))), 2)
        x = self.drop(x.view(x.size(0), -1))
        return F.log_softmax(self.fc(x), dim=1)


def train(model, loader, optimizer, epoch):
    model.train()
    total_loss = 0
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        total_loss += loss
    print('Epoch {} train loss {:.4f}'.format(epoch, total_loss / len(loader)))
    return total_loss


def test(model, loader):
    """Loss and accuracy on the test set."""
    model.eval()
    test_loss = 0
    correct = 0
    for data, target in loader:
        output = model(data)
        test_loss += F.nll_loss(output, target, reduction='sum').item()
        pred = output.data.max(1, keepdim=True)[1]  # index of the max log-probability
        correct += pred.eq(target.view_as(pred)).sum().item()
    print('Test loss {:.4f}, accuracy {}/{}'.format(test_loss / len(loader.dataset), correct, len(loader.dataset)))
    return correct


def confidence(model, loader):
    """Mean probability of the predicted class."""
    scores = []
    for data, _ in loader:
        output = model(data)
        scores.append(output.exp().max(1)[0].numpy().mean())
    return float(sum(scores) / len(scores))


def main():
    torch.manual_seed(args.seed)
    train_loader, test_loader = image_loaders()
    model = Net(NUM_CLASSES)
    optimizer = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for epoch in range(1, args.epochs + 1):
        train(model, train_loader, optimizer, epoch)
        test(model, test_loader)
    torch.save(model, CHECKPOINT)
    try:
        restored = torch.load(CHECKPOINT)
    except Exception as error:
        print('Restoring failed:', type(error).__name__)
    else:
        restored.eval()
        print('Restored accuracy', test(restored, test_loader))
    try:
        print('Confidence {:.2f}'.format(confidence(model, test_loader)))
    except RuntimeError as error:
        print('Confidence failed:', error)


if __name__ == '__main__':
    main()
