export function query(root) { root.textContent = "query"; return { title: "query", stop() {} }; }
