// What a reader looks at is in the address: it can be sent to others, and the back button works.

const EMPTY = { test: "", outcome: "", metric: "", key: "", search: "", sort: "" };
let state = { ...EMPTY };

function stateOfAddress() {
  const found = new URLSearchParams(location.hash.slice(1));
  return Object.fromEntries(Object.keys(EMPTY).map((name) => [name, found.get(name) ?? ""]));
}

// The address of what is looked at now, but for some changes.
function addressOf(changes) {
  const told = Object.entries({ ...state, ...changes }).filter(([, value]) => value);
  return `#${new URLSearchParams(told)}`;
}

const go = (changes) => (location.hash = addressOf(changes));
// For what is typed: the back button does not go through every letter.
const goOn = (changes) => location.replace(addressOf(changes));
