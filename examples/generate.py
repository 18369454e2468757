"""Write text with the character RNN that train_rnn.py has saved."""
import argparse

import torch
import torch.nn as nn

from synthetic import CHARACTERS


class CharRNN(nn.Module):
    def __init__(self, vocabulary, hidden):
        super(CharRNN, self).__init__()
        self.encoder = nn.Embedding(vocabulary, hidden)
        self.rnn = nn.GRU(hidden, hidden)
        self.drop = nn.Dropout(0.3)
        self.decoder = nn.Linear(hidden, vocabulary)

    def forward(self, x, h):
        out, h = self.rnn(self.encoder(x), h)
        return self.decoder(self.drop(out)), h


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--length', type=int, default=40)
    parser.add_argument('--hidden', type=int, default=32)
    args = parser.parse_args()

    model = CharRNN(len(CHARACTERS), args.hidden)
    model.load_state_dict(torch.load('rnn.pt'))
    model.eval()
    text = 't'
    h = torch.zeros(1, 1, args.hidden)
    for _ in range(args.length):
        x = torch.tensor([[CHARACTERS.index(text[-1])]])
        output, h = model(x, h)
        text += CHARACTERS[output.view(-1).argmax().item()]
    print(text)


if __name__ == '__main__':
    main()
