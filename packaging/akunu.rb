# Akunu for Homebrew, from a source archive. Of a checkout:
#   python -m build --sdist . && brew install --build-from-source packaging/akunu.rb
# HEAD and the archive are those of the folder that this file lies in; whoever publishes the formula puts their addresses here.
class Akunu < Formula
  include Language::Python::Virtualenv

  desc "Run language models, embedding models and Whisper on your own machine"
  homepage "https://pypi.org/project/akunu/"
  url "file://#{Dir[File.expand_path("../dist/akunu-*.tar.gz", __dir__)].max}"
  license all_of: ["Apache-2.0", "MIT"]

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "libsndfile"
  depends_on "python@3.13"

  on_linux do
    depends_on "gcc" # C++20
  end

  def install
    # What it needs comes from PyPI as wheels: some of it (llguidance, tokenizers) is Rust, which takes long to compile.
    venv = virtualenv_create(libexec, "python3.13", system_site_packages: false, without_pip: false)
    system libexec/"bin/python", "-m", "pip", "install", "--no-cache-dir", buildpath
    bin.install_symlink libexec/"bin/akunu", libexec/"bin/akunu-bench"
    system libexec/"bin/python", "-m", "akunu.cli.manual", buildpath/"man"
    man1.install Dir["man/*.1"]
    generate_completions_from_executable(bin/"akunu", shells: [:bash, :zsh, :fish], shell_parameter_format: :click)
    venv
  end

  service do
    run [opt_bin/"akunu", "serve", "ember"]
    keep_alive crashed: true
    log_path var/"log/akunu.log"
    error_log_path var/"log/akunu.log"
  end

  test do
    assert_match "42", shell_output("#{bin}/akunu run --device cpu 'What is 17 + 25?'")
  end
end
